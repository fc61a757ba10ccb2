"""The progress of some work: ``7 of 15 runs, about 12 min left``."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass
class Pace:
    """Counts parts of roughly equal length, and estimates the remaining time from the finished ones."""

    of: int
    done: int = 0
    begun: float = field(default_factory=time.monotonic)
    noun: str = ""

    def step(self) -> Pace:
        self.done += 1
        return self

    def __str__(self) -> str:
        return f"{self.done} of {self.of} {self.noun}".rstrip() + self.left()

    def left(self) -> str:
        """``, about 12 min left``; empty before the first part and after the last."""
        if not 0 < self.done < self.of:
            return ""
        return f", about {_said((time.monotonic() - self.begun) / self.done * (self.of - self.done))} left"


def _said(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
