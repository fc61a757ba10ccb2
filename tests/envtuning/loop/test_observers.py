"""Observers of one's own: found by their place, heard in order, and no run depends on them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from pydantic import BaseModel

from envtuning import loop
from envtuning.errors import SpecError
from envtuning.loop.observer import Observer, Observers, observer_at
from envtuning.runs.spec import RunSpec, SuiteSpec, load_spec
from tests.envtuning.counting_runs import spec_of

ROOT = Path(__file__).parents[3]


@pytest.fixture
def spec() -> RunSpec:
    small = SuiteSpec(validation_per_slice=4, test_per_slice=2, probe_per_slice=2)
    return load_spec("scripted").with_rounds(2).model_copy(update={"suites": small})


class Diary(Observer):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def __getattribute__(self, name):
        if name in vars(Observer):
            object.__getattribute__(self, "heard").append(name)
        return object.__getattribute__(self, name)


def test_several_hear_the_same_and_change_nothing(spec, tmp_path):
    one, two = Diary(), Diary()
    run = loop.start(spec, tmp_path / "heard", Observers([one, two]))
    alone = loop.start(spec, tmp_path / "alone")
    assert one.heard == two.heard
    assert one.heard[0] == "run_began"
    assert one.heard[-1] == "run_left"
    for name in (
        "stage_began",
        "progressed",
        "validated",
        "stage_ended",
        "engineer_asked",
        "engineer_answered",
        "test_opened",
    ):
        assert name in one.heard
    assert run.state.test == alone.state.test
    assert [stage.report.results for stage in run.state.stages] == [
        stage.report.results for stage in alone.state.stages
    ]


class Offline(Observer):
    """Whatever it hears, it raises."""

    def __getattribute__(self, name):
        if name in vars(Observer):
            raise ConnectionError("wandb.ai is not reachable")
        return object.__getattribute__(self, name)


def offline() -> Observer:
    raise ConnectionError("no network")


def test_what_an_observer_raises_is_told_once_and_changes_nothing(tmp_path):
    spec = spec_of({}, {}, validate_every=500)
    diary = Diary()
    with pytest.warns(RuntimeWarning) as told:
        run = loop.start(spec, tmp_path / "run", Observers([Offline(), diary]))
    (said,) = (str(one.message) for one in told)
    line = Offline.__getattribute__.__code__.co_firstlineno + 2
    assert said.startswith(
        "observer Offline: run_began raised ConnectionError: wandb.ai is not reachable "
        f"(test_observers.py, line {line}); the run goes on"
    )
    with pytest.warns(RuntimeWarning, match="observer Offline"):
        alone = loop.start(spec, tmp_path / "alone", Offline())
    quiet = loop.start(spec, tmp_path / "quiet")
    assert run.state.incidents() == alone.state.incidents() == quiet.state.incidents() == []
    assert run.state.test == alone.state.test == quiet.state.test
    heard = Diary()
    loop.start(spec, tmp_path / "heard", heard)
    assert diary.heard == heard.heard


class Settings(BaseModel, frozen=True):
    project: str = "lakes"


def test_pydantic_s_errors_are_told_in_one_line_without_calling_every_model_a_config():
    class Renames(Observer):
        def run_left(self) -> None:
            Settings().project = "tools"

    with pytest.warns(RuntimeWarning, match="a Settings is frozen: build another one") as told:
        Observers([Renames()]).run_left()
    (said,) = (str(one.message) for one in told)
    assert "\n" not in said
    assert "config" not in said


@pytest.mark.parametrize("fault", [ConnectionError, KeyboardInterrupt])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_trainee_is_closed_whatever_an_observer_does_at_the_end(with_trainee, tmp_path, fault):
    closed = []

    class Leaves(Observer):
        def run_left(self) -> None:
            assert closed == [1]
            raise fault("upload failed")

    with_trainee(close=lambda self: closed.append(1))
    with pytest.raises(KeyboardInterrupt) if fault is KeyboardInterrupt else nullcontext():
        loop.start(spec_of({}), tmp_path / "run", Leaves())
    assert closed == [1]


@pytest.mark.parametrize(
    ("place", "says"),
    [
        (f"{__name__}:offline", "cannot be made: ConnectionError: no network"),
        ("wandb", "name it as 'package.module:factory'"),
        ("no.such:Thing", "'no.such' cannot be imported"),
        ("envtuning.loop.observer:Nobody", "cannot be made"),
        ("envtuning.seeds:derive", "cannot be made"),
        ("builtins:dict", "made a dict: derive it from"),
    ],
)
def test_what_is_no_observer_is_said(place, says):
    with pytest.raises(SpecError, match=says):
        observer_at(place)
    assert type(observer_at("envtuning.loop.observer:Observer")) is Observer


def test_weights_and_biases_offline_keeps_what_the_run_went_through(spec, tmp_path):
    """The example, with the real package and without a network: its own file holds the run's numbers."""
    pytest.importorskip("wandb")
    (tmp_path / "small.json").write_text(json.dumps(spec.model_dump(mode="json")))
    command = [sys.executable, "-m", "envtuning", "run", "small.json", "--out", "run"]
    command += ["--observer", "examples.wandb_observer:WandbObserver"]
    environment = os.environ | {"WANDB_MODE": "offline", "WANDB_SILENT": "true"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), environment.get("PYTHONPATH", "")])
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert ended.returncode == 0, ended.stderr
    kept = list((tmp_path / "wandb").glob("offline-run-*/*.wandb"))
    assert len(kept) == 1
    written = kept[0].read_bytes()
    for name in (b"training/success_rate", b"validation/valid_rate", b"stage 1"):
        assert name in written
