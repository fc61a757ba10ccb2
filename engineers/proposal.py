"""``Proposal``: an engineer's answer: the next config, the reasons for it, and its cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from engineers.knobs import changes

ConfigT = TypeVar("ConfigT", bound=BaseModel)


class Change(BaseModel):
    """One knob that was turned, and why."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(description="The knob, dotted: slices.6.hole_ratio")
    old: Any = None
    new: Any = None
    reason: str = ""


class Usage(BaseModel):
    """The tokens and the cost of a proposal. ``cost`` is None if no price is known."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    prompt_tokens: int = Field(0, ge=0)
    completion_tokens: int = Field(0, ge=0)
    cost: float | None = Field(0.0, ge=0)  # US dollars
    seconds: float = Field(0.0, ge=0)
    attempts: int = Field(0, ge=0)  # questions asked of the model

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    @classmethod
    def total(cls, usages: Iterable[Usage]) -> Usage:
        """The sum of several usages. Its cost is None if any of their costs is None."""
        each = list(usages)
        costs = [usage.cost for usage in each]
        return cls(
            prompt_tokens=sum(usage.prompt_tokens for usage in each),
            completion_tokens=sum(usage.completion_tokens for usage in each),
            cost=None if None in costs else sum(cost for cost in costs if cost is not None),
            seconds=round(sum(usage.seconds for usage in each), 3),
            attempts=sum(usage.attempts for usage in each),
        )


class Proposal(BaseModel, Generic[ConfigT]):
    """The next config, the reasons for it, and its cost."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    config: ConfigT
    reasons: list[Change] = Field(default_factory=list)
    usage: Usage = Field(default_factory=Usage)
    engineer: str = ""
    kept: dict[str, str] = Field(
        default_factory=dict, description="Why knobs that the engineer looked at stay as they are, by the knob."
    )
    fallback: bool = Field(
        False, description="True when every reply was refused, so the current config stays in force."
    )
    refusals: list[str] = Field(default_factory=list, description="Why earlier replies were refused, a sentence each.")

    @model_serializer(mode="wrap")
    def _in_short(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Where nothing is kept with a reason, stored proposals read as they always did."""
        told: dict[str, Any] = handler(self)
        return {name: value for name, value in told.items() if value or name != "kept"}

    def with_changes(self, current: BaseModel) -> Self:
        """A copy whose ``reasons`` are the knobs that differ from ``current``, each with the reason that is given for it or for its group.

        A reason for a knob that does not differ, or for a group without any that does, goes to ``kept``.
        """
        given = {one.path: one.reason for one in self.reasons}
        made, used = list[Change](), set[str]()
        for path, old, new in changes(current, self.config):
            names = [".".join(path[:length]) for length in range(len(path), 0, -1)]
            reasons = [given[name] for name in names if name in given]  # the knob's own before those of its groups
            used.update(names)
            made.append(Change(path=names[0], old=old, new=new, reason=reasons[0] if reasons else ""))
        kept = {name: reason for name, reason in given.items() if reason and name not in used}
        return self.model_copy(update={"reasons": made, "kept": self.kept | kept})

    def told_reasons(self) -> list[str]:
        """A line for each reason, of knobs that were turned or kept, with its knobs: engineers give one reason for several."""
        knobs: dict[str, list[str]] = {}
        given = {one.path: one.reason for one in self.reasons if one.reason}
        for name, reason in (given | self.kept).items():
            knobs.setdefault(reason, []).append(name)
        return [f"{', '.join(names)}: {reason}" for reason, names in knobs.items()]
