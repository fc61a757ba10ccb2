"""Checkpoints inside a stage: when they are kept, what continues from them, and damaged ones."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envtuning import atomic
from envtuning.errors import RunError
from envtuning.loop import inside
from envtuning.loop import run as loop
from envtuning.loop.stage import first_attempt
from envtuning.outcomes import Outcome, Tally
from envtuning.runs.checked import Files
from envtuning.trainees.base import TrainingDiverged, WorkerLost
from tests.envtuning.counting_runs import spec_of
from tests.envtuning.counting_world import CountConfig, CountWorld
from tests.envtuning.written_down import Asked


class Killed(BaseException):
    """The process dies."""


class Long(Asked):
    """Its stages are kept at their validations; it dies when it was trained so far."""

    checkpoints_inside = True
    dies_at = 0
    saved: list[str]

    def train(self, config: Any, budget: int, *, seed: int, on_iteration: Any = None) -> dict[str, float]:
        found = super().train(config, budget, seed=seed, on_iteration=on_iteration)
        if self.dies_at and self.steps >= self.dies_at:
            type(self).dies_at = 0
            raise Killed
        return found

    def save(self, folder: Path) -> None:
        super().save(folder)
        self.saved.append(f"{folder.parent.name}/{folder.name}".split("draft")[0])


@pytest.mark.parametrize(
    ("budget", "keeps", "stretches"),
    [
        (1070, True, [1]),  # 465 and 70 leave 465 and 70: nothing is left to continue with after the second
        (1071, True, [1, 2]),  # a step
        (1070, False, []),
    ],
)
def test_a_stage_is_kept_at_its_validations_while_something_is_left_to_train(
    with_trainee, monkeypatch, tmp_path, budget, keeps, stretches
):
    kept, real = [], inside.keep
    monkeypatch.setattr(inside, "keep", lambda *given: kept.append(given[2]) or real(*given))
    with_trainee(Long if keeps else Asked, saved=[])
    run = loop.start(spec_of({"budget": budget}, validate_every=465), tmp_path / "run")
    assert kept == stretches
    assert list(run.state.stages[0].path.glob("inside-*")) == []


@pytest.mark.parametrize("dies_at", [500, 900])
@pytest.mark.parametrize("diverges", [False, True])
def test_a_stage_killed_after_such_a_checkpoint_continues_from_it_and_ends_the_same(
    with_trainee, tmp_path, dies_at, diverges
):
    rule = {"rule": "converged", "window": 2, "min_gain": 0.0, "metric": "success_rate"}
    spec = spec_of({"budget": 2000, "advance_when": rule, "config": CountConfig(hint=0.25), "fade": {"knob": "hint"}},
                   validate_every=200)  # fmt: skip

    def train(self: Any, config: Any, budget: int, *, seed: int, on_iteration: Any = None) -> dict[str, float]:
        if diverges and not type(self).fault:
            type(self).fault = True
            Asked.train(self, config, 100, seed=seed, on_iteration=on_iteration)
            raise TrainingDiverged("nan")
        on_iteration({"odd": "x"})
        return Long.train(self, config, budget, seed=seed, on_iteration=on_iteration)

    with_trainee(Long, saved=[], train=train, fault=False)
    whole = loop.start(spec, tmp_path / "whole")
    trainee = with_trainee(Long, saved=[], train=train, fault=False, dies_at=dies_at)
    with pytest.raises(Killed):
        loop.start(spec, tmp_path / "killed")
    (left,) = (tmp_path / "killed" / "stages" / "00").glob("inside-*")
    before = sum(trainee.budgets)
    run = loop.resume(tmp_path / "killed")
    assert sum(trainee.budgets) < before + sum(whole.state.stages[0].done.trained.values())  # not from the beginning
    for name in ("chosen", "report", "metrics", "episodes"):
        one, other = (getattr(each.state.stages[0], name) for each in (run, whole))
        if name == "report":
            one, other = (report.model_copy(update={"run": ""}) for report in (one, other))
        assert (one() if callable(one) else one) == (other() if callable(other) else other)
    done, expected = (each.state.stages[0].done.model_copy(update={"seconds": 0.0}) for each in (run, whole))
    assert done == expected
    assert done.attempts == 1 + diverges
    assert not left.exists()


@pytest.mark.parametrize("validate", ["every 200", "last"])
def test_the_outcomes_of_a_half_done_stage_survive_a_kill_bit_for_bit(with_trainee, tmp_path, validate):
    """Sums of scores that no decimal number holds, with repeats and kinds of failure; the report and all lines are the same bytes."""

    def train(self: Any, config: Any, budget: int, *, seed: int, on_iteration: Any = None) -> dict[str, float]:
        def tell(metrics: dict[str, Any]) -> None:
            tally = Tally()
            for number in range(7):
                score = ((self.steps + number) % 10) / 7 % 1
                tally.observe(
                    Outcome("all", score > 0.8, score, "" if score > 0.8 else "missed", repeat=number % 3 == 0)
                )
            on_iteration(metrics | {"outcomes": tally})

        return Long.train(self, config, budget, seed=seed, on_iteration=tell)

    rule = {"rule": "reached", "value": 0.99, "on": "training", "metric": "score"}
    suites = {"validation_per_slice": 4, "test_per_slice": 4, "validate": validate}
    spec = spec_of({"budget": 2000, "advance_when": rule}, {"budget": 400}, suites=suites)
    folders = [tmp_path / name / "run" for name in ("whole", "killed")]
    with_trainee(Long, saved=[], train=train)
    loop.start(spec, folders[0])
    with_trainee(Long, saved=[], train=train, dies_at=900)
    with pytest.raises(Killed):
        loop.start(spec, folders[1])
    (left,) = (folders[1] / "stages" / "00").glob("inside-*")
    assert json.loads((left / "state.json").read_text())["outcomes"], "half of the stage's"
    loop.resume(folders[1])
    for name in ("00/report.json", "00/metrics.jsonl", "01/report.json", "01/metrics.jsonl"):
        one, other = ((folder / "stages" / name).read_bytes() for folder in folders)
        assert one == other
    row = json.loads((folders[1] / "stages" / "00" / "report.json").read_text())["training_results"][0]
    assert row["repeats"]["episodes"] > 0 < row["failures"]["missed"]


def test_what_was_noticed_before_a_kill_changes_no_seed_after_it(with_trainee, tmp_path):
    changes = {"saved": [], "collapse": lambda self, iterations: "entropy fell"}
    whole = with_trainee(Long, **changes)
    loop.start(spec_of({"budget": 1000}, validate_every=200), tmp_path / "whole")
    killed = with_trainee(Long, **changes, dies_at=500)
    with pytest.raises(Killed):
        loop.start(spec_of({"budget": 1000}, validate_every=200), tmp_path / "killed")
    killed.seeds.clear()
    run = loop.resume(tmp_path / "killed")
    assert [incident.kind for incident in run.state.incidents()] == ["collapsed"]
    assert killed.seeds == whole.seeds[-len(killed.seeds) :]


@pytest.mark.parametrize("diverges", [False, True])
def test_what_a_lost_worker_had_trained_is_not_charged_after_a_kill_either(with_trainee, tmp_path, diverges):
    """Killed after 500 steps, resumed at 400, lost after 600: as if it had been lost after 600."""
    spec = spec_of({"budget": 1600}, validate_every=200)

    def train(self: Any, config: Any, budget: int, *, seed: int, on_iteration: Any = None) -> dict[str, float]:
        found = Long.train(self, config, budget, seed=seed, on_iteration=on_iteration)
        if type(self).diverges:
            type(self).diverges = False
            raise TrainingDiverged("nan")
        if type(self).loses and self.steps >= 600:
            type(self).loses = False
            raise WorkerLost("gone")
        return found

    changes = {"saved": [], "train": train, "diverges": diverges, "loses": True}
    with_trainee(Long, **changes)
    whole = loop.start(spec, tmp_path / "whole").state.stages[0].done
    with_trainee(Long, **changes, dies_at=500)
    with pytest.raises(Killed):
        loop.start(spec, tmp_path / "killed")
    done = loop.resume(tmp_path / "killed").state.stages[0].done
    assert done.attempts == 2 + diverges
    assert (done.spent, done.trained) == (whole.spent, whole.trained)


KEPT = [{"kind": "iteration", "spent": 1}, {"kind": "validation", "spent": 2}]


def kept(tmp_path: Path, *stretches: int) -> Path:
    """A stage's folder with these checkpoints inside, and a line of metrics that was written after them."""
    stage = tmp_path / "stages" / "00"
    stage.mkdir(parents=True)
    atomic.write_lines(stage / "metrics.jsonl", [*KEPT, {"kind": "end"}])
    files = Files.begin(tmp_path)
    for stretch in stretches:
        state = {"config": {}, "stretch": stretch, "lines": KEPT}
        with files.new_folder(stage / f"inside-{stretch}") as draft:
            (draft / "trainee").mkdir()
            (draft / "trainee" / "steps.json").write_text("1")
            (draft / "state.json").write_text(json.dumps(state))
    return stage


def session_of(tmp_path: Path, stage: Path) -> Any:
    """Of a run whose last stage is in this folder."""
    log = SimpleNamespace(files=Files(tmp_path))
    plan = SimpleNamespace(world=CountWorld())
    return SimpleNamespace(log=log, plan=plan, stage=SimpleNamespace(path=stage))


def test_a_checkpoint_inside_takes_the_place_of_those_before_it(tmp_path):
    stage = kept(tmp_path, 9, 10)
    assert [folder.name for folder in inside.folders(stage)] == ["inside-9", "inside-10"]  # by number
    assert inside.latest(Files(tmp_path), stage) == stage / "inside-10"
    inside.keep(Files(tmp_path), stage, 11, "{}", lambda folder: (folder / "x").write_text("y"))
    assert [folder.name for folder in inside.folders(stage)] == ["inside-11"]
    assert (stage / "inside-11" / "trainee" / "x").read_text() == "y"
    assert (stage / "metrics.jsonl").exists()
    assert inside.latest(Files(tmp_path), tmp_path) is None


@pytest.mark.parametrize("file", ["trainee/steps.json", "state.json"])
def test_a_damaged_checkpoint_inside_is_told(tmp_path, file):
    stage = kept(tmp_path, 9, 10)
    (stage / "inside-10" / file).write_text("2")
    with pytest.raises(RunError, match="inside-10 "):
        inside.latest(Files(tmp_path), stage)


@pytest.mark.parametrize("text", ["", '{"kind": "iteration", "spent": 1}\n{"kind": "end"}\n', "no line of JSON"])
def test_damaged_metrics_of_an_interrupted_stage_are_written_again(tmp_path, text):
    stage = kept(tmp_path, 9)
    (stage / "metrics.jsonl").write_text(text)
    attempt, checkpoint = first_attempt(session_of(tmp_path, stage))
    assert (attempt.lines, attempt.stretch, checkpoint) == (KEPT, 9, stage / "inside-9")
    assert Files(tmp_path).lines(stage / "metrics.jsonl", dict, whole=False) == KEPT


def test_one_with_keys_that_this_version_does_not_know_is_told_with_the_remedy(tmp_path):
    stage = kept(tmp_path, 9)
    state = stage / "inside-9" / "state.json"
    state.write_text(state.read_text().replace('{"config"', '{"mood": 1, "config"', 1))
    Files(tmp_path).note(stage / "inside-9")
    with pytest.raises(RunError, match=r"restore it from a copy, or remove the folders inside-\* beside it"):
        first_attempt(session_of(tmp_path, stage))
