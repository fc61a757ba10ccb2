"""``Augmenter``: actionable feedback as middleware. A world reports events; the augmenter may add advice.

The world judges by the raw result; the hint is shown beside it and changes nothing else. So a stage can switch the feedback
on or off, and an engineer can write it. Tool use (``worlds.bfcl.hints``) and the lakes (``mapf_frozenlake.augmenter``) both
use this interface, and both text environments take an ``augmenter``.
"""

from __future__ import annotations

from typing import Protocol, TypeVar, runtime_checkable


@runtime_checkable
class Event(Protocol):
    """An action of the agent and its result; each world's own events have more fields."""

    @property
    def action(self) -> str:
        """The agent's own text."""
        ...

    @property
    def result(self) -> str:
        """The world's answer."""
        ...

    @property
    def error(self) -> bool:
        """Whether something went wrong."""
        ...


E = TypeVar("E", bound=Event, contravariant=True)


class Augmenter(Protocol[E]):
    def __call__(self, event: E, /) -> str | None:
        """A sentence with advice for the next action, or None. Has no side effects."""
        ...
