"""A stage trains in stretches, fades its hints, ends by its rule or its budget, and always begins from the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

import envtuning.loop.session
from envtuning.loop import run as loop
from envtuning.runs.log import RunLog
from envtuning.runs.plan import Plan
from envtuning.runs.spec import RunSpec, SuiteSpec, load_spec
from envtuning.runs.state import TestRecord
from envtuning.runs.tasks import Choose, Test, Train, next_task
from envtuning.runs.transitions import Reached
from envtuning.seeds import derive
from envtuning.trainees import TraineeKind
from envtuning.trainees.scripted import ScriptedTrainee, difficulty, solve_chance
from envtuning.worlds.lakes.world import LakeWorld
from mapf_frozenlake import LakeConfig

SMALL = SuiteSpec(validation_per_slice=4, test_per_slice=4, probe_per_slice=2, failure_cases=1)


class Recorder(ScriptedTrainee):
    """Writes down what it is asked to do."""

    calls: list[tuple]

    def train(self, config, budget, *, seed, on_iteration=None):
        self.calls.append(("train", config, budget, seed))
        return super().train(config, budget, seed=seed, on_iteration=on_iteration)

    def load(self, folder: Path) -> None:
        self.calls.append(("load", folder.parent.name if folder.name == "checkpoint" else folder.name))
        super().load(folder)

    def close(self) -> None:
        self.calls.append(("close",))


@pytest.fixture
def recorder(monkeypatch):
    cls = type("OneRecorder", (Recorder,), {"calls": []})
    monkeypatch.setattr(TraineeKind, "make", lambda kind, options, unit, **given: cls(**given, **options))
    return cls


def spec_of(*stages: dict, **changes: object) -> RunSpec:
    base = load_spec("scripted")
    first = base.stages[0].model_dump() | {"advance_when": None}
    parsed = RunSpec.model_validate({"target": base.target, "stages": [first | stage for stage in stages]})
    made = parsed.stages
    return base.model_copy(update={"stages": tuple(made), "suites": SMALL, **changes})


def trained(recorder) -> list[tuple]:
    return [call for call in recorder.calls if call[0] == "train"]


def test_every_stage_begins_from_the_checkpoint_on_the_disk_interrupted_or_not(recorder, tmp_path):
    loop.start(spec_of({}, {"config": "engineer"}, {"config": "engineer"}), tmp_path / "run")
    assert [call[1] for call in recorder.calls if call[0] == "load"] == ["start", "00", "01", "00", "02"]
    assert recorder.calls[-1] == ("close",)


def test_a_rule_that_never_holds_ends_with_the_budget_and_says_what_was_missing(recorder, tmp_path):
    suites = SMALL.model_copy(update={"validates": "every 1000"})
    run = loop.start(spec_of({"budget": 4000, "advance_when": Reached(value=1.1)}, suites=suites), tmp_path / "run")
    assert "is spent" in run.state.stages[0].done.reason
    assert "below 1.1" in run.state.stages[0].done.reason


def test_hints_fade_in_steps_from_full_to_the_configs_strength_and_stay_there(recorder, tmp_path):
    dark = load_spec("scripted").stages[0].config | {"hint_strength": 0.2}
    run = loop.start(
        spec_of({"budget": 10_000, "config": dark, "fade": {"knob": "hint_strength", "over": 0.5}}), tmp_path / "run"
    )
    strengths = [call[1].hint_strength for call in trained(recorder)]
    budgets = [call[2] for call in trained(recorder)]
    assert strengths[0] == 1.0
    assert strengths == sorted(strengths, reverse=True)
    assert len(set(strengths)) == 11  # full, nine between, the config's own
    assert strengths[-1] == pytest.approx(0.2)
    faded_after = sum(budget for budget, strength in zip(budgets, strengths, strict=True) if strength > 0.2 + 1e-9)
    assert faded_after == pytest.approx(5000, rel=0.1)
    assert run.state.stages[0].chosen.config.hint_strength == 0.2  # what was asked for stays on record


def test_seeds_differ_between_stages_and_stretches_and_repeat_between_runs(recorder, tmp_path):
    suites = SMALL.model_copy(update={"validates": "every 1000"})
    spec = spec_of({"budget": 3000}, {"config": "engineer", "budget": 3000}, suites=suites)
    loop.start(spec, tmp_path / "one")
    seeds = [call[3] for call in trained(recorder)]
    assert len(set(seeds)) == len(seeds) >= 4
    recorder.calls.clear()
    loop.start(spec, tmp_path / "two")
    assert [call[3] for call in trained(recorder)] == seeds
    recorder.calls.clear()
    loop.start(spec.model_copy(update={"seed": 1}), tmp_path / "three")
    assert not set(seeds) & {call[3] for call in trained(recorder)}


def test_what_is_next_depends_on_the_files_alone(recorder, tmp_path):
    spec = spec_of({}, {"config": "engineer"})
    run = RunLog.create(tmp_path / "run", Plan.of(spec))
    assert next_task(run.plan, run.state) == Choose(0)
    loop.continue_run(run, stages=1)
    assert next_task(run.plan, run.state) == Choose(1)
    loop.continue_run(run)
    assert next_task(run.plan, run.state) is None
    (run.path / "test.json").unlink()
    run = RunLog.open(run.path)
    assert next_task(run.plan, run.state) == Test()
    (run.state.stages[1].path / "done.json").unlink()
    run = RunLog.open(run.path)
    assert next_task(run.plan, run.state) == Train(1)
    (run.state.stages[0].path / "config.json").unlink()
    run = RunLog.open(run.path)
    assert next_task(run.plan, run.state) == Choose(0)


def test_the_test_suite_is_played_once_after_the_last_stage_and_never_before(recorder, tmp_path, monkeypatch):
    played: list[str] = []
    real = LakeWorld.play

    def watch(world, policy, suite, config, *, seed):
        run = RunLog.open(tmp_path / "run")
        kind = (
            "test" if (run.path / "test.cases").exists() and len(suite) == 12 and suite == loop_suites.test else "other"
        )
        played.append(kind if kind == "other" else f"test after {len(run.state.done)} stages")
        return real(world, policy, suite, config, seed=seed)

    real_open = envtuning.loop.session.open_suites

    def remember(run):
        nonlocal loop_suites
        loop_suites = real_open(run)
        return loop_suites

    loop_suites = None
    monkeypatch.setattr(envtuning.loop.session, "open_suites", remember)
    monkeypatch.setattr(LakeWorld, "play", watch)
    loop.start(spec_of({}, {"config": "engineer"}), tmp_path / "run")
    assert played.count("other") == 4  # a validation and a probe in each stage
    assert [kind for kind in played if kind != "other"] == ["test after 2 stages"] * 2  # first and last trainee
    assert played[-2:] == ["test after 2 stages"] * 2


def test_no_decision_changes_with_the_results_on_the_test_suite(tmp_path):
    """The run's own results, each rate turned into its opposite, lie there while it still has stages to train."""
    spec = spec_of({}, {"config": "engineer"}, {"config": "engineer"})
    expected = loop.start(spec, tmp_path / "one" / "run")
    turned = {
        name: [
            row.model_copy(update={"metrics": {metric: 1 - rate for metric, rate in row.metrics.items()}}).model_dump()
            for row in rows
        ]
        for name, rows in (("first", expected.state.test.first), ("last", expected.state.test.last))
    }
    short = RunLog.create(tmp_path / "two" / "run", Plan.of(spec))
    loop.continue_run(short, stages=1)
    short.tested(TestRecord(**turned))
    loop.continue_run(short)
    assert (
        short.state.test.model_dump() == turned != expected.state.test.model_dump()
    )  # it was there, and of this very run's form
    assert [stage.chosen for stage in short.state.stages] == [stage.chosen for stage in expected.state.stages]
    assert [stage.report for stage in short.state.stages] == [stage.report for stage in expected.state.stages]


def test_the_scripted_learners_gradient_wavers_around_what_there_is_to_learn():
    """The share-weighted 4p(1 − p) of its chances, by two fifths at most either way."""
    config = LakeConfig.single(3, num_agents=2, hole_ratio=0.1, wait_ratio=0.0)
    chance = solve_chance(0.0, difficulty(3, 0.1, 0.0, 2))
    signal = 4 * chance * (1 - chance)
    norms = [ScriptedTrainee(capacity={"max_size": 3}).train(config, 1, seed=seed)["grad_norm"] for seed in range(200)]
    assert (min(norms), max(norms)) == pytest.approx((0.6 * signal, 1.4 * signal))


def test_derived_seeds_are_fixed_for_ever_and_do_not_run_together():
    assert derive(0, "trainee") == 239998115
    assert derive(1, "a", 2) != derive(12, "a")
    assert len({derive(seed, "stage", stage) for seed in range(50) for stage in range(50)}) == 2500
