"""Whole runs whose sums are written down beforehand, to the step: what is trained, validated, given back and charged twice."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from envtuning.errors import RunError
from envtuning.loop import run as loop
from envtuning.loop.ask import redraw
from envtuning.runs.log import RunLog
from envtuning.runs.plan import Plan
from envtuning.runs.sections import SuiteSpec
from envtuning.runs.tasks import closing_cost
from envtuning.trainees import TraineeKind
from envtuning.trainees.base import TrainingDiverged, WorkerLost
from tests.envtuning.counting_runs import PROBED, TESTED, VALIDATED, spec_of
from tests.envtuning.counting_world import STEPS, CountConfig, CountTrainee, CountWorld


def sums(run: RunLog) -> list[tuple[int, int, int]]:
    """Of every stage: trained, validated, charged."""
    done = [stage.done for stage in run.state.done]
    return [(one.trained["env_steps"], one.validated["env_steps"], one.spent["env_steps"]) for one in done]


def kinds(run: RunLog, stage: int) -> list[str]:
    return [line["kind"] for line in run.state.stages[stage].metrics() if line["kind"] != "iteration"]


@pytest.fixture
def played() -> Iterator[list[tuple[int, CountConfig]]]:
    CountWorld.played.clear()
    yield CountWorld.played
    CountWorld.played.clear()


def test_a_run_without_validations_in_between(tmp_path):
    """The first stage does not know what its closing costs and overspends it; the second pays that back, to the step."""
    run = loop.start(spec_of({}, {}, {}), tmp_path / "run")
    assert sums(run) == [(1000, 91, 1091), (818, 91, 909), (909, 91, 1000)]
    assert run.state.spent["env_steps"] == 3000
    assert [stage.done.validated for stage in run.state.stages] == [{"env_steps": 91, "episodes": 13}] * 3
    assert [stage.report.cost for stage in run.state.stages] == [
        {"env_steps": 1091.0},
        {"env_steps": 909.0},
        {"env_steps": 1000.0},
    ], "its training counts no episodes"
    assert [stage.report.budget_left for stage in run.state.stages] == [1909, 1000, 0]
    assert [stage.report.rounds_left for stage in run.state.stages] == [2, 1, 0]
    assert [stage.report.training["trained_env_steps"] for stage in run.state.stages] == [1000, 818, 909]
    assert [stage.report.training["validated_env_steps"] for stage in run.state.stages] == [91, 91, 91]
    assert [stage.report.training["iterations"] for stage in run.state.stages] == [10, 9, 10]
    # After 1,000, 1,818 and 2,727 steps the policy solves 2, 3 and 5 of the ten; the test has other numbers.
    assert [stage.done.metrics["success_rate"] for stage in run.state.stages] == [0.2, 0.3, 0.5]
    assert [row.metrics["success_rate"] for row in (*run.state.test.first, *run.state.test.last)] == [0.0, 0.0]


def test_a_run_with_validations_in_between_ends_every_stage_validated_exactly_once(tmp_path):
    run = loop.start(spec_of({}, {}, validate_every=300), tmp_path / "run")
    # 300 + 70, 300 + 70, then 260 are left, and their closing validation and the probe come on top.
    # The next one sets 231 // 3 aside: of 909 that leaves 832, so 300 + 70, 300 + 70, 92.
    assert sums(run) == [(860, 231, 1091), (692, 231, 923)]
    assert kinds(run, 0) == kinds(run, 1) == ["validation"] * 3 + ["end"]
    spent = [line["spent"] for line in run.state.stages[0].metrics() if line["kind"] == "validation"]
    assert spent == [370, 740, 1070]
    assert closing_cost(run.plan, run.state, 0) == 0
    assert closing_cost(run.plan, run.state, 1) == closing_cost(run.plan, run.state, 2) == 77


def test_a_stage_that_ends_on_a_validation_is_not_validated_again(tmp_path):
    # 465 and 70 leave 465, and 70: the budget ends with the second validation.
    run = loop.start(spec_of({"budget": 1070}, validate_every=465), tmp_path / "run")
    assert kinds(run, 0) == ["validation", "validation", "end"]
    assert sums(run) == [(930, 161, 1091)]


def test_a_rule_that_ends_the_stage_at_a_validation_ends_it_without_another(tmp_path):
    rule = {"rule": "reached", "value": 0.1}
    run = loop.start(spec_of({"advance_when": rule}, {}, validate_every=250), tmp_path / "run")
    assert kinds(run, 0) == ["validation", "validation", "end"]  # after 500 steps one of the ten is solved
    assert sums(run)[0] == (500, 161, 661)
    assert run.state.stages[0].done.reason == "success_rate 0.100 is at least 0.1"
    # What the first saved, the second may spend: 2000 − 661 = 1339, of which 161 // 2 are set aside: 4 times 250 + 70.
    assert sums(run)[1] == (1000, 301, 1301)


def test_a_total_repeats_the_last_stage_until_less_than_its_closing_is_left(tmp_path):
    run = loop.start(spec_of({}, {}, total=3050), tmp_path / "run")
    assert sums(run) == [(1000, 91, 1091), (818, 91, 909), (909, 91, 1000)]  # 50 are left, and 91 would be needed
    assert [(stage.report.rounds_left, stage.report.budget_left) for stage in run.state.done] == [
        (None, 1959), (None, 1050), (None, 50)
    ]  # fmt: skip
    more = loop.start(spec_of({}, {}, total=3092), tmp_path / "more")
    assert sums(more)[3:] == [(1, 91, 92)]
    assert more.state.spent["env_steps"] == 3092


def faulty(*faults: BaseException) -> type:
    """Fails once for each fault in the second stage, after 400 steps."""
    waiting = list(faults)

    class Faulty(CountTrainee):
        def train(self, config, budget, *, seed, on_iteration=None):
            if waiting and self.steps == 1000:
                super().train(config, 400, seed=seed, on_iteration=on_iteration)
                raise waiting.pop(0)
            return super().train(config, budget, seed=seed, on_iteration=on_iteration)

    return Faulty


@pytest.fixture
def with_faults(monkeypatch, tmp_path):
    def run(*faults: BaseException, budget: int = 1000) -> RunLog:
        made = faulty(*faults)
        monkeypatch.setattr(TraineeKind, "make", lambda kind, options, unit, **given: made(**given, **options))
        return loop.start(spec_of({}, {"budget": budget}, {}), tmp_path / "run")

    return run


def test_what_a_lost_worker_had_trained_is_given_back_to_the_step(with_faults):
    run = with_faults(WorkerLost("gone"), WorkerLost("gone again"))
    assert sums(run) == [(1000, 91, 1091), (818, 91, 909), (909, 91, 1000)]
    assert [stage.done.attempts for stage in run.state.stages] == [1, 3, 1]


def test_what_a_diverged_attempt_had_trained_is_charged_to_the_step(with_faults):
    run = with_faults(TrainingDiverged("nan"))
    # 400 of the second stage's 909 are gone; 418 are left beside the closing.
    assert sums(run) == [(1000, 91, 1091), (418, 91, 909), (909, 91, 1000)]
    assert run.state.stages[1].done.trained == {"env_steps": 418}


def test_a_diverged_attempt_stays_charged_when_the_next_one_loses_a_worker(with_faults):
    run = with_faults(TrainingDiverged("nan"), WorkerLost("gone"))
    assert sums(run)[1] == (418, 91, 909)


def test_hints_are_shown_while_validating_as_they_are_while_training_and_never_in_the_test(tmp_path, played):
    stage = {"config": CountConfig(level=0.25, hint=0.25), "fade": {"knob": "hint", "start": 1.0, "over": 1.0}}
    loop.start(spec_of(stage, validate_every=500), tmp_path / "run")
    validations = [rules for cases, rules in played if cases == VALIDATED]
    assert [rules.level for rules in validations] == [0.5, 0.5]  # the target's
    # Half of the way from 1 to .25 in tenths, then all of it but for what the closing validation leaves.
    assert [round(rules.hint, 3) for rules in validations] == [0.625, 0.25]
    ((_, probed),) = [(cases, rules) for cases, rules in played if cases == PROBED]
    assert (probed.level, round(probed.hint, 3)) == (0.25, 0.25)  # as the stage deals them
    assert [rules for cases, rules in played if cases == TESTED] == [CountConfig()] * 2


def test_the_probe_is_dealt_with_the_hints_that_training_had_last(tmp_path, played):
    stage = {
        "config": CountConfig(hint=0.0),
        "fade": {"knob": "hint", "start": 1.0, "over": 1.0},
        "advance_when": {"rule": "spent", "amount": 400},
    }
    loop.start(spec_of(stage, validate_every=300), tmp_path / "run")
    (probed,) = [rules.hint for cases, rules in played if cases == PROBED]
    validated = [rules.hint for cases, rules in played if cases == VALIDATED]
    assert 0.0 < probed <= validated[-1] < validated[0]


def test_the_test_has_no_case_of_the_validation(tmp_path):
    run = loop.start(spec_of({}), tmp_path / "run")
    validation, test = (
        json.loads(file.read_text()) for file in ((run.path / "validation.cases"), (run.path / "test.cases"))
    )
    assert (validation, test) == (list(range(VALIDATED)), list(range(VALIDATED, VALIDATED + TESTED)))


def test_the_test_shows_the_trainee_as_the_run_began_where_it_is_asked_to(tmp_path):
    suites = {"validation_per_slice": 1, "test_per_slice": TESTED, "probe_per_slice": 0, "test_start": True}
    spec = spec_of({"budget": 1600}, {"budget": 1600}, suites=suites)
    run = loop.start(spec, tmp_path / "run")
    tables = RunLog.open(run.path).state.test
    solved = [[row.metrics["success_rate"] for row in rows] for rows in (tables.start, tables.first, tables.last)]
    assert solved == [
        [0],
        [2 / TESTED],
        [1],
    ]  # one case for every 500 steps of training; the first is in the validation
    plain = loop.start(
        spec.model_copy(update={"suites": SuiteSpec(**suites | {"test_start": False})}), tmp_path / "plain"
    )
    assert plain.state.test == tables.model_copy(update={"start": None})
    assert plain.state.spent == run.state.spent  # the test is not charged


def test_a_table_of_the_start_with_other_slices_is_refused(tmp_path):
    suites = {"validation_per_slice": 4, "test_per_slice": TESTED, "probe_per_slice": 0, "test_start": True}
    run = loop.start(spec_of({}, suites=suites), tmp_path / "run")
    test = run.path / "test.json"
    with run.files.changing(test):
        test.write_text(run.state.test.model_copy(update={"start": []}).model_dump_json())
    with pytest.raises(RunError, match="other slices"):
        RunLog.open(run.path)


def test_a_redrawn_first_config_is_one_that_the_world_can_draw():
    """Half of all draws are refused by this world; the first that is not is taken."""
    levels = [redraw(Plan.of(spec_of({}, seed=seed)), CountConfig()).level for seed in range(30)]
    assert max(levels) <= 0.5
    assert len(set(levels)) == 30


def test_one_case_costs_what_the_sums_above_say():
    assert VALIDATED * STEPS == 70
    assert PROBED * STEPS == 21


class CountsEpisodes(CountTrainee):
    """Every iteration is one episode."""

    def train(self, config, budget, *, seed, on_iteration=None):
        def tell(metrics):
            if on_iteration is not None:
                on_iteration(metrics | {"episodes": 1})

        told = super().train(config, budget, seed=seed, on_iteration=tell)
        return told | {"episodes": told["env_steps"] // 100}


def test_a_unit_that_training_counts_is_told_with_that_of_validation(tmp_path):
    spec = spec_of({}, trainee={"kind": f"{__name__}:CountsEpisodes"})
    (stage,) = loop.start(spec, tmp_path / "run").state.done
    assert stage.report.cost == {"env_steps": 1091.0, "episodes": 10.0 + VALIDATED + PROBED}


def test_a_stage_that_trained_nothing_tells_the_budget_s_unit(tmp_path):
    run = loop.start(spec_of({}, {"budget": 150}), tmp_path / "run")
    idle = run.state.done[1]
    assert (idle.done.trained, idle.report.cost) == ({}, {"env_steps": 91.0})


def test_a_stage_that_cannot_train_says_why(tmp_path):
    """The first stage overspends by what it closes with; the second has less than its own closing costs, the third owes."""
    run = loop.start(spec_of({}, {"budget": 150}, {"budget": 10}, {}), tmp_path / "run")
    assert [stage.done.trained.get("env_steps", 0) > 0 for stage in run.state.done] == [True, False, False, True]
    told = {one.stage: one.message for one in run.state.incidents() if one.kind == "not_trained"}
    assert told.keys() == {1, 2}
    assert told[1].startswith("stage 1 trains nothing: its validation and probe cost 91 env steps, and it has 59;")
    assert told[2].startswith("stage 2 trains nothing: what came before spent 22 env steps more than it had;")


def test_a_stage_that_diverged_too_late_to_train_again_says_what_that_cost(with_faults):
    run = with_faults(*[TrainingDiverged("nan")] * 2, budget=901)
    (told,) = (one.message for one in run.state.incidents() if one.kind == "not_trained")
    assert "cost 91 env steps, and it has 810, of which earlier attempts spent 800; give" in told


def test_a_stage_that_cannot_train_plays_no_probe_that_nobody_asked_for(tmp_path):
    """There are no outcomes to stand in for. A probe would be charged, and the stages after it could not train either."""
    suites = {"validation_per_slice": VALIDATED, "test_per_slice": TESTED}
    run = loop.start(spec_of({}, {"budget": 150}, suites=suites), tmp_path / "run")
    idle = run.state.done[1]
    assert (idle.done.trained, idle.done.validated["env_steps"]) == ({}, VALIDATED * STEPS)
    assert idle.report.own_config_results == []
