"""``Engineer``: all that a loop knows of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from engineers.guard import Guard
from engineers.knobs import Knob
from engineers.proposal import ConfigT, Proposal
from engineers.report import StageReport
from engineers.tiers import UNKNOWN, Tier

if TYPE_CHECKING:
    from engineers.model.transcript import Transcript


class Engineer(ABC):
    """A function of (its own seed, the report, the current config): it keeps no other state, so a run can resume.

    Derive your class from this one: ``name`` and ``propose`` are required, all other methods have a default.
    """

    name: str
    tier: Tier = UNKNOWN  # the highest kind of information that it uses
    guard: Guard | None = None  # the checks of its own proposals; None: the caller has to check them
    transcript: Transcript | None = None  # where it keeps what it asked, if it asks anybody

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
    """The engineer itself, with its tier as a ``Tier``. Raises ``TypeError`` for what does not derive from ``Engineer``, has no name, or
    cannot be asked."""
    if isinstance(made, type) and issubclass(made, Engineer):
        raise TypeError(
            f"the class {made.__name__}, which is not an engineer itself: give an instance, {made.__name__}()"
        )
    if not isinstance(made, Engineer):
        raise TypeError(f"a {type(made).__name__}, which is not an engineer: derive its class from engineers.Engineer")
    engineer: Engineer = made
    if not isinstance(getattr(engineer, "name", None), str):
        raise TypeError(f'a {type(made).__name__}, which has no name: write name = "…" in its class')
    _raise_unless_takes_a_report(engineer)
    if not isinstance(engineer.tier, Tier):  # a class may give the number alone
        if isinstance(engineer.tier, bool) or engineer.tier not in list(Tier):
            raise TypeError(
                f"engineer {engineer.name} has tier={engineer.tier!r}: give one of {', '.join(map(str, Tier))}"
            )
        engineer.tier = Tier(engineer.tier)
    return engineer


def _raise_unless_takes_a_report(engineer: Engineer) -> None:
    """Else the first question would tell, late in a training."""
    try:
        signature(engineer.propose).bind(None, current=None, editable=None)
    except TypeError as error:
        raise TypeError(
            f"engineer {engineer.name}, whose propose cannot be called ({error}): write def propose(self, report, current, editable=None)"
        ) from None
