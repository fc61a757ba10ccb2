"""``Augmenter``: actionable feedback as middleware. A world says what happened; the augmenter may add what to do about it.

The raw result is what the world judges by; the hint is shown beside it and changes nothing else. So any world's feedback can
be switched per stage, replaced, or written by an engineer, by one signature.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Event:
    """Something the agent did and what came of it; each world's own events say more."""

    action: str  # as the agent wrote it
    result: str  # as the world answered
    error: bool  # whether the answer says that it went wrong


class Augmenter(Protocol):
    def __call__(self, event: Event, /) -> str | None:
        """A sentence that says what to do next, or None where there is nothing to add. Has no side effects."""
        ...
