"""``Proposal``: an engineer's answer, and ``Engineer``: all that a loop knows of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from engineers.knobs import changes
from engineers.own import completed
from engineers.report import StageReport
from engineers.tiers import UNKNOWN, Tier

if TYPE_CHECKING:
    from engineers.guard import Guard
    from engineers.knobs import Knob

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
            seconds=sum(usage.seconds for usage in each),
            attempts=sum(usage.attempts for usage in each),
        )


class Proposal(BaseModel, Generic[ConfigT]):
    """The next config, the reasons for it, and its cost."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    config: ConfigT
    reasons: list[Change] = Field(default_factory=list)
    usage: Usage = Field(default_factory=Usage)
    engineer: str = ""
    fallback: bool = Field(
        False, description="True when every reply was refused, so the current config stays in force."
    )
    refusals: list[str] = Field(default_factory=list, description="Why earlier replies were refused, a sentence each.")

    def with_changes(self, current: BaseModel) -> Self:
        """This proposal. If it gives no reasons, a copy that lists its changes without reasons."""
        if self.reasons:
            return self
        made = [Change(path=".".join(path), old=old, new=new) for path, old, new in changes(current, self.config)]
        return self.model_copy(update={"reasons": made})


class Engineer(ABC):
    """A function of (its own seed, the report, the current config): it keeps no other state, so a run can resume.

    An object with a name and ``propose`` need not derive from this class: the missing parts are taken from here.
    """

    name: str
    tier: Tier = UNKNOWN  # the highest kind of information that it uses
    guard: Guard | None = None  # the checks of its own proposals; None: the caller has to check them

    @abstractmethod
    def propose(
        self, report: StageReport, current: ConfigT, editable: Sequence[str] | None = None
    ) -> Proposal[ConfigT]:
        """The next config. ``editable`` lists knob paths (``slices.*.share``); None asks the config's own class."""

    def can_turn(self, knobs: Sequence[Knob]) -> bool:
        """Whether any answer of this engineer can change one of these knobs."""
        return True

    def check_able(self, current: BaseModel, editable: Sequence[str] | None = None) -> None:  # noqa: B027
        """Raises ``KnobError`` if this engineer can change nothing in the config: it would silently equal ``fixed``."""

    def check_askable(self) -> None:  # noqa: B027
        """Raises ``ChatError`` if it already knows that its model cannot be asked."""

    def recall(self, exchanges: Sequence[Mapping[str, Any]]) -> None:  # noqa: B027
        """Answer the same questions with the replies of these recorded exchanges, which are already paid for."""


def as_engineer(made: Any) -> Engineer:
    """An object with a name and ``propose`` as an ``Engineer``. Raises ``TypeError`` for other objects."""
    if isinstance(made, Engineer):
        engineer: Engineer = made
    elif hasattr(made, "name") and callable(getattr(made, "propose", None)):
        engineer = completed(made, Engineer)()
    else:
        raise TypeError(f"a {type(made).__name__}, which is not an engineer: it needs a name and propose()")
    if not isinstance(engineer.tier, Tier):  # a class may give the number alone
        if isinstance(engineer.tier, bool) or engineer.tier not in list(Tier):
            raise TypeError(
                f"engineer {engineer.name} has tier={engineer.tier!r}: give a whole number from 0 to {max(Tier)}"
            )
        engineer.tier = Tier(engineer.tier)
    return engineer
