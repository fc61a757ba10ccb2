"""What describes a stage: how few functions lead to its training, and how seldom its config is read."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel, Field, model_validator

import engineers
from engineers import Proposal
from envtuning import loop
from envtuning.trainees.scripted import ScriptedTrainee
from tests.envtuning.counting_runs import spec_of
from tests.envtuning.counting_world import CountTrainee, CountWorld

OURS = tuple(str(Path(__file__).parents[3] / package) for package in ("envtuning", "engineers"))


class Reached(BaseException):
    """The trainee is asked to train."""


def functions_of_ours() -> Iterator[str]:
    """Those that are running now, the latest first."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.startswith(OURS):
            yield frame.f_code.co_qualname
        frame = frame.f_back


def test_at_most_ten_functions_lead_from_the_command_to_training(tmp_path, monkeypatch):
    """``train`` itself included."""
    from envtuning.__main__ import main

    found: list[str] = []
    real = ScriptedTrainee.train

    def train(self: ScriptedTrainee, *given: Any, **named: Any) -> dict[str, float]:
        found.extend([real.__qualname__, *functions_of_ours()])
        raise Reached

    monkeypatch.setattr(ScriptedTrainee, "train", train)
    monkeypatch.setattr(sys, "argv", ["envtuning", "run", "scripted", "--out", str(tmp_path / "run")])
    monkeypatch.setattr("engineers.shared.ending.signal.signal", lambda *_: None)  # the test's own handlers stay
    monkeypatch.setattr("engineers.shared.ending._say_when_it_takes_long", lambda _: None)
    with pytest.raises(Reached):
        main()
    assert found[0] == "ScriptedTrainee.train"
    assert found[-1] == "main"
    assert len(found) <= 10, found


class Counted(BaseModel):
    """A config that counts how often one of its class is read."""

    read: ClassVar[int] = 0
    level: float = Field(0.5, ge=0.0, le=1.0, description="How hard it is.")
    hint: float = Field(0.0, ge=0.0, le=1.0, description="How much is told.")

    @model_validator(mode="after")
    def _is_read(self) -> Counted:
        type(self).read += 1
        return self


class CountedWorld(CountWorld):
    config_type = Counted


class Answering(engineers.Engineer):
    """Proposes one config, and then the count begins."""

    name = "answering"

    def propose(self, report: Any, current: Any, editable: Any = None) -> Proposal[Counted]:
        proposal = Proposal(config=Counted(level=0.25), engineer=self.name)
        Counted.read = 0
        return proposal


class Trained(CountTrainee):
    """Writes down each config, and how often one was read since the proposal."""

    seen: ClassVar[list[tuple[Counted, int]]] = []

    def train(self, config: Any, budget: int, *, seed: int, on_iteration: Any = None) -> dict[str, float]:
        self.seen.append((config, Counted.read))
        return super().train(config, budget, seed=seed, on_iteration=on_iteration)


def test_a_proposed_config_is_read_once_on_its_way_to_the_trainee(tmp_path, monkeypatch):
    Trained.seen.clear()
    monkeypatch.setattr("envtuning.loop.ask.make_engineer", lambda *_: Answering())
    spec = spec_of(
        {"config": {}}, {}, world=f"{__name__}:CountedWorld", target={}, trainee={"kind": f"{__name__}:Trained"}
    )
    run = loop.start(spec, tmp_path / "run")
    config, read = Trained.seen[-1]
    assert config == Counted(level=0.25)
    assert read == 1
    assert config is run.state.stages[1].chosen.config is run.state.stages[1].chosen.proposal.config
