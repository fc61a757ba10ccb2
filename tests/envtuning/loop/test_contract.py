"""A trainee that breaks its contract costs a sentence and an incident; it makes no run loop for ever, and none crash."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from envtuning import loop
from envtuning.errors import RunError
from envtuning.loop.contract import TraineeFailed, amounts_in, read_metrics
from envtuning.runs.log import RunLog
from envtuning.runs.spec import EngineerSpec, RunSpec, SpecError, SuiteSpec, TraineeSpec, load_spec
from envtuning.runs.tasks import next_task
from envtuning.runs.transitions import GradNormStable
from envtuning.trainees import TraineeKind
from envtuning.trainees.scripted import ScriptedTrainee
from envtuning.worlds.lakes.world import LakeWorld
from envtuning.worlds.world import InfeasibleConfig

SMALL = SuiteSpec(validation_per_slice=4, probe_per_slice=2, failure_cases=1)


@pytest.fixture
def spec() -> RunSpec:
    return load_spec("scripted").with_rounds(2).model_copy(update={"suites": SMALL})


def run_with(cls: type, spec: RunSpec, folder: Path, monkeypatch) -> RunLog:
    monkeypatch.setattr(TraineeKind, "make", lambda kind, options, unit, **given: cls(**given, **options))
    return loop.start(spec, folder)


class Silent(ScriptedTrainee):
    """Never calls ``on_iteration``."""

    def train(self, config, budget, *, seed, on_iteration=None):
        return super().train(config, budget, seed=seed)


def test_what_train_returns_counts_where_nobody_calls_on_iteration(spec, tmp_path, monkeypatch):
    spec = spec.model_copy(
        update={"engineer": EngineerSpec(name="fixed")}
    )  # others read outcomes, which only one gives
    silent = run_with(Silent, spec, tmp_path / "silent", monkeypatch)
    talking = run_with(ScriptedTrainee, spec, tmp_path / "talking", monkeypatch)
    for one, other in zip(silent.state.done, talking.state.done, strict=True):
        assert one.done.spent == other.done.spent
        assert one.report.results == other.report.results
    assert [line["kind"] for line in silent.state.stages[0].metrics()] == ["iteration", "validation", "end"]
    assert silent.state.stages[0].metrics()[0]["env_steps"] == silent.state.stages[0].done.trained["env_steps"]


def returning(value: object) -> type:
    class Returning(ScriptedTrainee):
        def train(self, config, budget, *, seed, on_iteration=None):
            return value

    return Returning


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        ({}, "reported nothing spent"),
        ({"env_steps": 0}, "reported nothing spent"),
        ({"env_steps": -500.0}, "reported env_steps=-500.0"),
        ({"env_steps": math.nan}, "reported env_steps=nan"),
        ({"env_steps": math.inf}, "reported env_steps=inf"),
        ({"env_steps": 1e300}, "reported env_steps=1e+300"),
        ({"env_steps": "many"}, "reported nothing spent"),
        ({"samples": 64.0}, "reported 64 samples spent"),
        (None, "gave NoneType as metrics"),
        ([1, 2], "gave list as metrics"),
    ],
)
def test_a_trainee_that_spends_nothing_stops_the_run_in_a_sentence(spec, tmp_path, monkeypatch, returned, says):
    with pytest.raises(RunError) as stopped:
        run_with(returning(returned), spec, tmp_path / "run", monkeypatch)
    assert says in str(stopped.value)
    assert "stage 0 failed 3 times" in str(stopped.value)


def test_metrics_that_are_no_numbers_are_left_out_and_recorded_once(spec, tmp_path, monkeypatch):
    class Wordy(ScriptedTrainee):
        def train(self, config, budget, *, seed, on_iteration=None):
            return super().train(
                config, budget, seed=seed, on_iteration=lambda entry: on_iteration(entry | {"mood": "good", "lr": None})
            )

    run = run_with(Wordy, spec, tmp_path / "run", monkeypatch)
    assert next_task(run.plan, run.state) is None
    assert [incident.kind for incident in run.state.incidents()] == ["odd_metrics"] * 4  # two names, two stages
    assert "mood='good'" in run.state.incidents()[0].message
    assert not any("mood" in line for line in run.state.stages[0].metrics())


def test_reading_metrics_keeps_every_number():
    numbers, odd = read_metrics({"a": 1, "b": True, "c": math.inf, 4: 2.5, "d": "1.0", "e": [1]}, "train")
    assert numbers == {"a": 1.0, "b": 1.0, "c": math.inf, "4": 2.5}
    assert [sentence.split("=")[0] for sentence in odd] == ["train gave d", "train gave e"]
    assert amounts_in({"env_steps": 10.0, "tokens": 7.6, "other": 3.0}, "train") == {"env_steps": 10, "tokens": 8}
    with pytest.raises(TraineeFailed, match="tokens=-1"):
        amounts_in({"tokens": -1.0}, "train")


def raising(method: str, times: int = 99) -> type:
    """A trainee one of whose methods raises, so many times."""
    left = [times]
    real = getattr(ScriptedTrainee, method)

    def fail(self, *arguments, **keywords):
        if left[0] > 0 and not (method == "load" and arguments[0].name == "start"):
            left[0] -= 1
            raise ZeroDivisionError("of all things")
        return real(self, *arguments, **keywords)

    return type("Raising", (ScriptedTrainee,), {method: fail})


@pytest.mark.parametrize("method", ["train", "policy", "save", "load"])
def test_an_exception_out_of_any_method_stops_the_run_in_a_sentence(spec, tmp_path, monkeypatch, method):
    with pytest.raises(
        RunError, match=rf"{method}.* raised ZeroDivisionError: of all things \(test_contract\.py, line \d+\)"
    ):
        run_with(raising(method), spec, tmp_path / "run", monkeypatch)


@pytest.mark.parametrize("method", ["train", "policy"])
def test_an_exception_once_is_survived_recorded_and_changes_no_result(spec, tmp_path, monkeypatch, method):
    run = run_with(raising(method, times=1), spec, tmp_path / "run", monkeypatch)
    whole = run_with(ScriptedTrainee, spec, tmp_path / "whole", monkeypatch)
    assert [incident.kind for incident in run.state.incidents()] == ["trainee_failed"]
    assert run.state.stages[0].done.attempts == 2
    assert run.state.stages[0].report.results == whole.state.stages[0].report.results


def test_a_save_that_writes_nothing_is_said(spec, tmp_path, monkeypatch):
    class Forgetful(ScriptedTrainee):
        def save(self, folder: Path) -> None:
            (folder / "empty").mkdir()

    with pytest.raises(RunError, match="save wrote nothing into its folder"):
        run_with(Forgetful, spec, tmp_path / "run", monkeypatch)
    assert not (tmp_path / "run" / "start").exists()


def test_a_policy_that_raises_on_one_case_fails_that_case_alone(spec, tmp_path, monkeypatch):
    class Fussy(ScriptedTrainee):
        def policy(self):
            act = super().policy()

            def fussy(instance):
                if instance.height == 3 and instance.holes[0, 0]:
                    raise KeyError("a hole in my corner")
                return act(instance)

            return fussy

    run = run_with(Fussy, spec, tmp_path / "run", monkeypatch)
    episodes = run.state.stages[0].episodes()
    raised = [episode for episode in episodes if episode.failure == "policy_error"]
    assert 0 < len(raised) < 4
    assert all(episode.slice == "3" and "a hole in my corner" in episode.note for episode in raised)
    assert {incident.kind for incident in run.state.incidents()} == {"policy_failed"}
    assert f"on {len(raised)} of {len(episodes)} cases" in run.state.incidents()[0].message
    assert run.state.stages[0].report.results[0].failures["policy_error"] == len(raised)


class Mute(ScriptedTrainee):
    reports = frozenset({"success_rate"})


class Formless(ScriptedTrainee):
    form = None


class Talker(ScriptedTrainee):
    form = "replies"


def test_a_rule_that_needs_a_metric_nobody_reports_is_refused_before_anything_is_made(spec, tmp_path):
    stages = (spec.stages[0].model_copy(update={"advance_when": GradNormStable()}), spec.stages[1])
    mute = spec.model_copy(update={"stages": stages, "trainee": TraineeSpec(kind=f"{__name__}:Mute")})
    with pytest.raises(
        SpecError, match=r"stages\.0\.advance_when needs grad_norm, and trainee .*Mute.* reports only success"
    ):
        loop.start(mute, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    """This file under its own name, as a run's file would name it."""
    import sys

    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or __import__(__name__))


def test_a_trainee_declares_the_form_of_its_policy_and_the_world_must_play_it(spec, tmp_path, monkeypatch):
    with pytest.raises(SpecError, match="declares form=None: set the class attribute `form`"):
        loop.start(spec.model_copy(update={"trainee": TraineeSpec(kind=f"{__name__}:Formless")}), tmp_path / "run")
    monkeypatch.setattr(LakeWorld, "forms", frozenset({"acts"}))
    talker = spec.model_copy(update={"trainee": TraineeSpec(kind=f"{__name__}:Talker")})
    with pytest.raises(SpecError, match=r"replies to texts, and the world 'lakes' cannot play that: .*'acts'"):
        loop.start(talker, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_plans_are_not_judged_on_a_target_that_slips(spec, tmp_path):
    slippery = spec.model_copy(update={"target": spec.target | {"is_slippery": True}})
    with pytest.raises(InfeasibleConfig, match=r"\bis_slippery=True\b"):
        loop.start(slippery, tmp_path / "run")


def test_what_an_engineer_is_told_of_the_target_and_of_the_stages_before(spec, tmp_path):
    run = loop.start(spec, tmp_path / "run")
    first, last = (stage.report for stage in run.state.done)
    assert first.target == run.plan.spec.target
    assert last.history[0].own_config_results == first.own_config_results
    assert last.history[0].cost == first.cost
    assert "hole" in first.failure_meanings
