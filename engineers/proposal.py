"""``Proposal``: what an engineer answers, and ``Engineer``: the one method a backend has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field

from engineers.report import StageReport

ConfigT = TypeVar("ConfigT", bound=BaseModel)


class Change(BaseModel):
    """One knob that was turned, and why."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(description="The knob, dotted: slices.6.hole_ratio")
    old: Any = None
    new: Any = None
    reason: str = ""


class Usage(BaseModel):
    """What a proposal took. ``cost`` is None where no price is known."""

    model_config = ConfigDict(extra="forbid")

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0  # US dollars
    seconds: float = 0.0
    attempts: int = 0  # questions asked of the model


class Proposal(BaseModel, Generic[ConfigT]):
    """The next config, why, and what it took to get it."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    config: ConfigT
    reasons: list[Change] = Field(default_factory=list)
    usage: Usage = Field(default_factory=Usage)
    engineer: str = ""
    fallback: bool = Field(False, description="True when every reply was refused and the current config goes on.")
    refusals: list[str] = Field(default_factory=list, description="Why earlier replies were refused, a sentence each.")


@runtime_checkable
class Engineer(Protocol):
    """A function of (its own seed, the report, the current config): it keeps no other state, so a run can resume."""

    name: str

    def propose(
        self, report: StageReport, current: ConfigT, editable: Sequence[str] | None = None
    ) -> Proposal[ConfigT]:
        """The next config. ``editable`` lists knob paths (``slices.*.share``); None asks the config's own class."""
        ...
