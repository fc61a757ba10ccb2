"""What the engineers' tests share: a kitchen, which is no lake, a report on it, and a chat that says what it is told to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, model_validator

from engineers import ChatError, Completion, Message, SliceResult, StageRecord, StageReport
from tests.answers import answer_of

EXAMPLE_REPORT = Path(__file__).parents[2] / "engineers" / "example_report.json"


class Dish(BaseModel):
    """One thing to cook."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    share: float = Field(0.5, ge=0, le=1, description="Weight of this dish in the data.")
    heat: float = Field(100.0, gt=0, le=300, description="Degrees of the stove.")
    steps: int = Field(3, ge=1, le=20, description="Steps of the recipe.")
    salt: float | None = Field(None, ge=0, le=1, description="Salt per portion; null for none.")
    helper: bool = Field(True, description="Whether somebody helps.", json_schema_extra={"role": "none"})


class Kitchen(BaseModel):
    """A config without lakes, with every kind of knob."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    editable: ClassVar[tuple[str, ...]] = ("menu", "style", "ovens.*")

    menu: dict[str, Dish] = Field(default_factory=lambda: {"soup": Dish(), "stew": Dish(heat=150, salt=0.2)})
    style: Literal["plain", "fancy"] = Field("plain", description="How plates are laid.")
    ovens: list[int] = Field(default_factory=lambda: [1, 2], description="Sizes of the ovens.", max_length=4)
    owner: str = Field("nobody", description="Not for engineers.")

    @model_validator(mode="after")
    def _something_is_cooked(self) -> Kitchen:
        if not any(dish.share > 0 for dish in self.menu.values()):
            raise ValueError("every dish has share 0: give at least one a share above 0")
        return self


class ScriptedChat:
    """Says one prepared reply after the other, raises prepared errors, and remembers what it was asked."""

    def __init__(self, *replies: str | ChatError, model: str = "local/scripted") -> None:
        self.model = model
        self.replies = list(replies)
        self.asked: list[list[Message]] = []

    def complete(self, messages: list[Message], schema: dict[str, Any] | None, *, max_tokens: int) -> Completion:
        self.asked.append(list(messages))
        reply = self.replies.pop(0)
        if isinstance(reply, ChatError):
            raise reply
        return Completion(reply, prompt_tokens=1000, completion_tokens=100)


@pytest.fixture
def kitchen() -> Kitchen:
    return Kitchen()


@pytest.fixture
def scripted() -> type[ScriptedChat]:
    return ScriptedChat


@pytest.fixture
def results() -> Callable[..., list[SliceResult]]:
    """results(soup=0.8, stew=0.1): 100 episodes each."""

    def make(episodes: int = 100, **rates: float) -> list[SliceResult]:
        return [
            SliceResult(
                name=name,
                episodes=episodes,
                metrics={"valid_rate": rate},
                failures={"burnt": round(episodes * (1 - rate))},
            )
            for name, rate in rates.items()
        ]

    return make


@pytest.fixture
def report(kitchen: Kitchen, results: Callable[..., list[SliceResult]]) -> StageReport:
    config = kitchen.model_dump(mode="json")
    earlier = StageRecord(stage=0, config=config, results=results(soup=0.5, stew=0.0), engineer="default")
    return StageReport(
        objective="valid_rate",
        stage=1,
        environment="A kitchen.",
        config=config,
        results=results(soup=0.8, stew=0.1),
        history=[earlier],
        training={"round": 1, "grad_norm": 0.25},
    )


@pytest.fixture
def answer() -> Callable[..., str]:
    """answer(soup={"heat": 120.0}) is a good reply that changes these knobs."""

    def make(reason: str = "it burns", **dishes: dict[str, Any]) -> str:
        values = {f"menu.{dish}.{knob}": value for dish, knobs in dishes.items() for knob, value in knobs.items()}
        return answer_of(values, reason)

    return make


@pytest.fixture
def example_report() -> StageReport:
    return StageReport.model_validate_json(EXAMPLE_REPORT.read_bytes())
