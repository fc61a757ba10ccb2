"""``Augmenter``: actionable feedback as middleware. A world says what happened; the augmenter may add what to do about it.

The world judges by the raw result; the hint is shown beside it and changes nothing else. So any world's feedback can
be switched per stage, replaced, or written by an engineer, with one signature. Tool use (``worlds.bfcl.hints``) and the lakes
(``mapf_frozenlake.augmenter``) both use it, and both text environments take an ``augmenter``.
"""

from __future__ import annotations

from typing import Protocol, TypeVar, runtime_checkable


@runtime_checkable
class Event(Protocol):
    """An action of the agent and its result; each world's own events have more fields."""

    @property
    def action(self) -> str:
        """As the agent wrote it."""
        ...

    @property
    def result(self) -> str:
        """As the world answered."""
        ...

    @property
    def error(self) -> bool:
        """Whether something went wrong."""
        ...


E = TypeVar("E", bound=Event, contravariant=True)


class Augmenter(Protocol[E]):
    def __call__(self, event: E, /) -> str | None:
        """A sentence that says what to do next, or None where there is nothing to add. Has no side effects."""
        ...
