"""``Augmenter``: actionable feedback as middleware. A world says what happened; the augmenter may add what to do about it.

The raw result is what the world judges by; the hint is shown beside it and changes nothing else. So any world's feedback can
be switched per stage, replaced, or written by an engineer, by one signature: tool use has it (``worlds.bfcl.hints``), and so have
the lakes (``mapf_frozenlake.augmenter``), whose text environment takes an ``augmenter`` as that of tool use does.
"""

from __future__ import annotations

from typing import Protocol, TypeVar, runtime_checkable


@runtime_checkable
class Event(Protocol):
    """Something the agent did and what came of it; each world's own events say more."""

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
