"""How a stage is cut into stretches, what of it is recorded, and what the loop hands to trainee and observer: to the step."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from envtuning.errors import RunError
from envtuning.loop import contract
from envtuning.loop import run as loop
from envtuning.loop.contract import TraineeFailed, amounts_in
from envtuning.runs.checked import Files
from envtuning.runs.log import RunLog
from envtuning.runs.resolve import resolve
from envtuning.runs.spec import RunSpec, SpecError
from envtuning.runs.tasks import Test, next_task
from envtuning.trainees.base import TrainingDiverged, WorkerLost
from envtuning.worlds.world import InfeasibleConfig
from tests.envtuning.counting_runs import spec_of
from tests.envtuning.counting_world import CountConfig, CountTrainee, CountWorld
from tests.envtuning.written_down import Asked, Told

# Stretches


@pytest.mark.parametrize(
    ("budget", "every", "over", "stretches"),
    [
        (1000, None, None, [1000]),
        (1000, None, 0.5, [50] * 10 + [500]),  # once it has faded, the rest is one stretch
        (1000, None, 1.0, [100] * 10),
        (10, None, 0.5, [1] * 5 + [5]),  # never less than a step
        (3000, 500, 1.0, [300, 200, 300, 200, 300, 200, 300, 200, 300, 200, 150]),  # 70 are played after each 500
    ],
)
def test_a_stretch_ends_at_the_next_validation_or_the_next_part_of_a_fade(
    with_trainee, tmp_path, budget, every, over, stretches
):
    trainee = with_trainee()
    fade = {"fade": {"knob": "hint", "start": 1.0, "over": over}} if over else {}
    loop.start(spec_of({"budget": budget} | fade, validate_every=every), tmp_path / "run")
    assert trainee.budgets == stretches
    assert len(set(trainee.seeds)) == len(stretches)


def test_a_stage_ends_with_its_budget_and_the_sentence_says_no_more(tmp_path):
    run = loop.start(spec_of({}), tmp_path / "run")
    assert run.state.stages[0].done.reason == "the budget of 1,000 env steps is spent"
    assert run.state.stages[0].metrics()[-1] == {"kind": "end", "reason": "the budget of 1,000 env steps is spent"}


def test_without_a_probe_none_is_played_and_none_is_told(tmp_path):
    spec = spec_of({})
    run = loop.start(
        spec.model_copy(update={"suites": spec.suites.model_copy(update={"probe_per_slice": 0})}), tmp_path / "run"
    )
    assert run.state.stages[0].done.validated == {"env_steps": 70, "episodes": 10}
    assert run.state.stages[0].report.own_config_results == []


def test_a_stage_that_trains_nothing_is_validated_all_the_same(tmp_path):
    """The second has exactly what the first overspent: it is not the first's fault, its own closing is too dear."""
    run = loop.start(spec_of({}, {"budget": 91}), tmp_path / "run")
    assert run.state.stages[1].done.trained == {}
    assert run.state.stages[1].done.validated == {"env_steps": 91, "episodes": 13}
    assert run.state.stages[1].done.metrics == run.state.stages[0].done.metrics


class Quiet(Asked):
    """Tells of its first iteration in a call only; the rest is in what it returns."""

    def train(self, config: Any, budget: int, *, seed: int, on_iteration: Any = None) -> dict[str, float]:
        found = super().train(config, budget, seed=seed)
        on_iteration({"env_steps": 10.0})
        return found


def test_what_a_trainee_tells_late_is_charged_in_every_stretch(with_trainee, tmp_path):
    with_trainee(Quiet)
    run = loop.start(spec_of({}, validate_every=300), tmp_path / "run")
    assert run.state.stages[0].done.trained == {"env_steps": 860}
    assert [line["spent"] for line in run.state.stages[0].metrics() if line["kind"] == "validation"] == [370, 740, 1070]


class Tired(Asked):
    """Trains once in each process."""

    def train(self, config: Any, budget: int, *, seed: int, on_iteration: Any = None) -> dict[str, float]:
        if self.steps:
            return {}
        return super().train(config, budget, seed=seed, on_iteration=on_iteration)


def test_a_later_stretch_that_spends_nothing_stops_the_run_too(with_trainee, tmp_path):
    with_trainee(Tired)
    with pytest.raises(RunError, match="reported nothing spent"):
        loop.start(spec_of({}, validate_every=300), tmp_path / "run")


def test_iterations_that_spend_nothing_count_as_nothing(with_trainee, tmp_path):
    class Chatty(Asked):
        def train(self, config: Any, budget: int, *, seed: int, on_iteration: Any = None) -> dict[str, float]:
            for _ in range(5):
                on_iteration({"success_rate": 0.5})
            return super().train(config, budget, seed=seed, on_iteration=on_iteration)

    with_trainee(Chatty)
    rule = {"rule": "spent", "amount": 300}
    run = loop.start(spec_of({"advance_when": rule}, validate_every=300), tmp_path / "run")
    assert run.state.stages[0].done.reason == "370 of 300 env steps spent"


def test_a_rule_and_its_reason_count_in_the_runs_own_unit(tmp_path):
    rule = {"rule": "spent", "amount": 10}
    run = loop.start(
        spec_of(
            {"budget": 40, "advance_when": rule},
            validate_every=20,
            trainee={"kind": f"{__name__}:Episodic"},
            unit="episodes",
        ),
        tmp_path / "run",
    )
    assert run.state.stages[0].done.reason == "30 of 10 episodes spent"
    assert run.state.spent["episodes"] == 33


class Episodic(CountTrainee):
    """Its budget is in episodes."""

    def train(self, config: Any, budget: int, *, seed: int, on_iteration: Any = None) -> dict[str, float]:
        return {"episodes": float(budget)}


def test_a_trainees_warning_is_recorded_once_with_what_it_says(with_trainee, tmp_path):
    told = Told()

    def collapse(self: Any, iterations: list[dict[str, float]]) -> str | None:
        return f"collapsed after {len(iterations)}" if len(iterations) > 2 else None

    with_trainee(collapse=collapse)
    loop.start(spec_of({}), tmp_path / "run", told)
    assert told.wrong == [("collapsed", 0, "collapsed after 3")]


# Attempts


def failing(*faults: BaseException) -> dict[str, Any]:
    """Once for each fault, after 100 steps of a stage that is not the first."""
    waiting = list(faults)

    def train(self: Any, config: Any, budget: int, *, seed: int, on_iteration: Any = None) -> dict[str, float]:
        if waiting and self.steps:
            Asked.train(self, config, 100, seed=seed, on_iteration=on_iteration)
            raise waiting.pop(0)
        return Asked.train(self, config, budget, seed=seed, on_iteration=on_iteration)

    return {"train": train}


@pytest.mark.parametrize(
    ("fault", "kind", "made", "same_seed"),
    [
        (WorkerLost("gone"), "worker_lost", 2, True),  # new processes, and the same again
        (TraineeFailed("broken"), "trainee_failed", 2, True),
        (TrainingDiverged("nan"), "diverged", 1, False),  # the same processes, and another draw
        (InfeasibleConfig("too deep"), "generation_failed", 1, False),
    ],
)
def test_how_a_stage_is_tried_again(with_trainee, tmp_path, fault, kind, made, same_seed):
    trainee, told = with_trainee(**failing(fault)), Told()
    stages = [{}, {"config": CountConfig(level=0.25)}]
    run = loop.start(spec_of(*stages), tmp_path / "run", told)
    assert trainee.made == made
    assert (trainee.seeds[1] == trainee.seeds[2]) == same_seed
    assert run.state.stages[1].done.attempts == 2
    assert run.state.stages[1].report.config["level"] == (0.25 if same_seed else 0.5)  # the last good one
    ((said, stage, message),) = told.wrong
    assert (said, stage) == (kind, 1)
    # The metrics of the failed attempt are gone, and begin with why.
    lines = [(line["kind"], line.get("message")) for line in run.state.stages[1].metrics()]
    assert lines[0] == ("incident", message)
    iterations = -(-run.state.stages[1].done.trained["env_steps"] // 100)
    assert lines[1:] == [("iteration", None)] * iterations + [("validation", None), ("end", None)]


@pytest.mark.parametrize("method", ["collapse", "unrewarded"])
def test_a_warning_before_a_worker_is_lost_changes_no_seed(with_trainee, tmp_path, method):
    trainee = with_trainee(**failing(WorkerLost("gone")), **{method: lambda self, iterations: "look at this"})
    loop.start(spec_of({}, {}), tmp_path / "run")
    assert trainee.seeds[1] == trainee.seeds[2]


def test_the_config_that_cannot_be_drawn_is_not_tried_again_where_it_is_the_last_good_one(with_trainee, tmp_path):
    with_trainee(**failing(InfeasibleConfig("too deep")))
    with pytest.raises(RunError, match="stage 1's config cannot be drawn: too deep"):
        loop.start(spec_of({}, {}), tmp_path / "run")


def test_a_stage_that_failed_too_often_says_why_each_time(with_trainee, tmp_path):
    faults = [TrainingDiverged("a"), WorkerLost("b"), TrainingDiverged("c"), TrainingDiverged("d")]
    with_trainee(**failing(*faults))
    with pytest.raises(RunError) as stopped:
        loop.start(spec_of({}, {}), tmp_path / "run")
    again = "the stage starts again from its checkpoint"
    good = "the last good checkpoint and config go on"
    assert f"stage 1 failed 3 times (a; {good}; b; {again}; c; {good})." in str(stopped.value)
    with_trainee(train=lambda self, *_, on_iteration, **__: on_iteration({"odd": "x"}) or {})
    with pytest.raises(RunError) as stopped:
        loop.resume(tmp_path / "run")
    assert str(stopped.value).count("reported nothing spent") == 3  # what else was recorded is not why it failed
    assert "odd" not in str(stopped.value)


def test_seconds_are_those_of_the_stage_to_the_millisecond(monkeypatch, tmp_path):
    clock = iter([100.0, 112.34567])
    monkeypatch.setattr("envtuning.loop.stage.time.monotonic", lambda: next(clock))
    run = loop.start(spec_of({}), tmp_path / "run")
    assert run.state.stages[0].done.seconds == 12.346


# Files


def test_records_are_indented_by_one_so_that_they_can_be_read_and_compared_by_line(tmp_path):
    run = loop.start(spec_of({}, {}), tmp_path / "run")
    stage = run.state.stages[0]
    files = (
        (stage.path / "config.json"),
        (stage.path / "report.json"),
        (stage.path / "done.json"),
        (run.state.stages[1].path / "config.json"),
        (run.path / "test.json"),
    )
    for file in (*files, run.path / "run.json"):
        lines = file.read_text().splitlines()
        assert lines[0] == "{"
        assert lines[1].startswith(' "')
        assert lines[-1] == "}"


@pytest.mark.parametrize(
    ("stages", "who"),
    [
        ([{}, {"name": "harder"}], ["default", "fixed"]),
        ([{}, {"name": "harder", "config": CountConfig(level=0.25)}], ["default", "file"]),
    ],
)
def test_each_stage_says_who_wrote_its_config_and_what_the_plan_calls_it(tmp_path, stages, who):
    run = loop.start(spec_of(*stages), tmp_path / "run")
    assert [stage.chosen.engineer for stage in run.state.stages] == who
    assert [run.plan.spec.stage(stage.number).name for stage in run.state.stages] == ["", "harder"]
    assert run.state.stages[1].report.history[0].engineer == "default"


# A run's beginning and end


def test_a_run_may_be_left_between_its_last_stage_and_its_test(tmp_path):
    run = loop.create(tmp_path / "run", spec_of({}, {}))
    loop.continue_run(run, stages=2)
    assert next_task(run.plan, run.state) == Test()
    loop.continue_run(run)
    assert next_task(run.plan, run.state) is None


@pytest.mark.parametrize(
    ("damage", "says"), [("gone", "is missing, but stage 1 starts from it"), ("changed", "differs")]
)
def test_a_stage_begins_from_a_whole_checkpoint_or_not_at_all(tmp_path, damage, says):
    import shutil

    run = loop.create(tmp_path / "run", spec_of({}, {}))
    loop.continue_run(run, stages=1)
    if damage == "gone":
        shutil.rmtree(run.state.stages[0].checkpoint)
    else:
        (run.state.stages[0].checkpoint / "steps.json").write_text("999")
    with pytest.raises(RunError, match=says):
        loop.resume(run.path)


@pytest.mark.parametrize(("stages", "stage"), [(1, 0), (3, 2)])
def test_a_trainee_that_cannot_be_closed_is_an_incident_of_the_last_stage(with_trainee, tmp_path, stages, stage):
    def close(self: Any) -> None:
        raise ZeroDivisionError("of all things")

    told = Told()
    with_trainee(close=close)
    run = loop.start(spec_of(*[{}] * stages), tmp_path / "run", told)
    line = close.__code__.co_firstlineno + 1
    said = f"close raised ZeroDivisionError: of all things (test_stage_rules.py, line {line})"
    assert told.wrong == [("trainee_failed", stage, said)]
    assert [(one.kind, one.stage) for one in run.state.incidents()] == [("trainee_failed", stage)]


def test_one_that_cannot_be_closed_before_any_stage_is_done_is_an_incident_of_the_first(with_trainee, tmp_path):
    def fail(self: Any, *_: Any, **__: Any) -> None:
        raise ZeroDivisionError("of all things")

    told = Told()
    with_trainee(train=fail, close=fail)
    with pytest.raises(RunError):
        loop.start(spec_of({}), tmp_path / "run", told)
    assert {stage for _, stage, _ in told.wrong} == {0}


def test_what_an_engineer_did_wrong_is_heard(tmp_path, monkeypatch):
    class Raising:
        def propose(self, *_: Any, **__: Any) -> None:
            raise ValueError("no idea")

    monkeypatch.setattr("envtuning.loop.ask.make_engineer", lambda *_: Raising())
    told = Told()
    loop.start(spec_of({}, {}), tmp_path / "run", told)
    ((kind, stage, message),) = told.wrong
    assert (kind, stage) == ("engineer_failed", 0)
    assert "no idea" in message


class Heavy(Asked):
    """Its checkpoints hold what only training on from them needs."""

    slimmed: list[tuple[str, str]]

    def save(self, folder: Path) -> None:
        super().save(folder)
        (folder / "moments").write_text("heavy")

    def slim(self, folder: Path) -> None:
        self.slimmed.append((folder.parent.name, "heavy" if (folder / "moments").exists() else "slim"))
        (folder / "moments").unlink(missing_ok=True)


def test_older_checkpoints_are_slimmed_when_nothing_trains_on_from_them_and_stay_whole(with_trainee, tmp_path):
    """The last one stays as it is while the next stage trains from it, and for whoever takes the trainee further."""
    trainee = with_trainee(Heavy, slimmed=[])
    run = loop.start(spec_of({}, {}, {}), tmp_path / "run")
    assert trainee.slimmed == [("00", "heavy"), ("00", "slim"), ("01", "heavy")]  # before stage 2, and before the test
    assert [(stage.checkpoint / "moments").exists() for stage in run.state.stages] == [False, False, True]
    for stage in run.state.stages:
        run.files.raise_unless_as_written(stage.checkpoint)
        (stage.checkpoint / "steps.json").write_text("999")
        with pytest.raises(RunError, match="has changed since it was written"):
            run.files.raise_unless_as_written(stage.checkpoint)


def test_a_checkpoint_that_cannot_be_slimmed_stays_and_the_run_goes_on(with_trainee, tmp_path):
    def fail(self: Any, folder: Path) -> None:
        raise ZeroDivisionError("of all things")

    with_trainee(Heavy, slim=fail)
    run = loop.start(spec_of({}, {}), tmp_path / "run")
    assert next_task(run.plan, run.state) is None
    line = fail.__code__.co_firstlineno + 1
    said = f"slim raised ZeroDivisionError: of all things (test_stage_rules.py, line {line})"
    assert [(one.kind, one.message) for one in run.state.incidents()] == [("trainee_failed", said)]


@pytest.mark.parametrize("stages", [2, 3])  # killed before the test, and before the last stage
@pytest.mark.parametrize("place", ["Heavy.slim", "Files.note"])
def test_a_run_killed_while_a_checkpoint_is_slimmed_goes_on(with_trainee, monkeypatch, tmp_path, place, stages):
    """In the middle of it, and before its new checksum is written."""
    spec = spec_of(*[{}] * stages)
    whole = loop.start(spec, tmp_path / "whole")
    owner, name = {"Heavy.slim": (Heavy, "slim"), "Files.note": (Files, "note")}[place]
    real = getattr(owner, name)

    def dies(*arguments: Any) -> None:
        of_a_checkpoint = arguments[-1].name == "checkpoint"
        if owner is Heavy or not of_a_checkpoint:
            real(*arguments)
        if of_a_checkpoint:
            raise KeyboardInterrupt

    with_trainee(Heavy, slimmed=[])
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, dies)
        with pytest.raises(KeyboardInterrupt):
            loop.start(spec, tmp_path / "run")
    assert not (tmp_path / "run" / "stages" / "00" / "checkpoint" / "moments").exists()
    assert loop.resume(tmp_path / "run").state.test == whole.state.test


# What is refused before anything is trained


@pytest.mark.parametrize(
    ("stages", "changes", "says"),
    [
        ([{}], {"editable": ("level", "depth")}, "editable: 'depth' names no knob of CountConfig"),
        ([{"fade": {"knob": "depth"}}], {}, r"stages\.0\.fade\.knob='depth' is not a number of CountConfig"),
        ([{}, {"fade": {"knob": "hint", "start": 3.0}}], {}, r"stages\.1\..*less than or equal to 1"),
        (
            [{}, {"advance_when": {"rule": "reached", "value": 0.9}}],
            {},
            r"stages\.1\.advance_when reads validations inside a stage, but suites\.validate is 'stages'",
        ),
    ],
)
def test_what_would_stop_a_later_stage_is_found_before_the_first(tmp_path, stages, changes, says):
    with pytest.raises(SpecError, match=says):
        loop.start(spec_of(*stages, **changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("combine", ["all", "any"])
@pytest.mark.parametrize("rule", [{"rule": "converged"}, {"rule": "reached", "value": 0.5}])
def test_a_rule_that_looks_at_what_the_world_does_not_report_is_refused(monkeypatch, rule, combine):
    def runnable(metric: str | None) -> None:
        rules = [rule | {"metric": metric}, {"rule": "spent", "amount": 9}]
        resolve(spec_of({"advance_when": {"rule": combine, "rules": rules}}, validate_every=500))

    runnable("vaild_rate")  # nobody knows what this world reports
    monkeypatch.setattr(CountWorld, "reports", frozenset({"success_rate", "pace"}))
    runnable("pace")
    runnable(None)  # the objective
    with pytest.raises(
        SpecError, match=r"stages\.0\.advance_when looks at vaild_rate, but the world .* reports only pace"
    ):
        runnable("vaild_rate")


def test_a_fade_is_looked_for_in_the_config_that_its_stage_has():
    """In its own where it is written; in the target where the engineer will write it."""
    lakes = {
        "target": {"slices": {3: {}, 4: {}}},
        "trainee": {"kind": "scripted"},
        "engineer": {"name": "fixed"},
        "suites": {"validation_per_slice": 1},
    }

    def runnable(first: str, second: str) -> None:
        stages = [
            {
                "budget": 10,
                "config": {"slices": {5: {}, 6: {}}},
                "fade": {"knob": f"slices.{first}.hole_ratio", "start": 0},
            },
            {"budget": 10, "fade": {"knob": f"slices.{second}.hole_ratio", "start": 0}},
        ]
        resolve(RunSpec.model_validate(lakes | {"stages": stages}))

    runnable("5", "3")
    for wrong, number in ((("3", "3"), 0), (("5", "5"), 1)):
        with pytest.raises(SpecError, match=rf"stages\.{number}\.fade\.knob"):
            runnable(*wrong)


# The contract's limits


@pytest.mark.parametrize(("amount", "may"), [(0, True), (10**15, True), (1.1e15, False), (float("nan"), False)])
def test_an_amount_lies_between_0_and_a_bound_that_no_call_reaches(amount, may):
    if may:
        assert amounts_in({"tokens": amount}, "train") == ({"tokens": amount} if amount else {})
        return
    with pytest.raises(TraineeFailed, match=r"report what was spent, from 0 to 1e\+15"):
        amounts_in({"tokens": amount}, "train")


class Closing:
    """Takes so long to close."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.closed = seconds, False
        self.thread: threading.Thread | None = None

    def close(self) -> None:
        self.thread = threading.current_thread()
        time.sleep(self.seconds)
        self.closed = True


def test_a_trainee_is_given_time_to_close_in_a_thread_that_cannot_keep_the_process():
    trainee = Closing(0.05)
    contract.close(trainee)
    assert trainee.closed
    assert (trainee.thread.name, trainee.thread.daemon) == ("closing", True)


def test_one_that_does_not_close_is_left_and_said(monkeypatch):
    monkeypatch.setattr(contract, "CLOSING", 0.01)
    with pytest.raises(TraineeFailed, match=r"close had not ended after 0\.01 s: the trainee is left as it is"):
        contract.close(Closing(0.2))


def test_a_run_opens_its_folder_by_any_path(tmp_path):
    run = loop.start(spec_of({}), str(tmp_path / "run"))
    assert RunLog.open(str(run.path)).plan.spec == run.plan.spec
