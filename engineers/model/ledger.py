"""``Ledger``: a record of each question to a model, written before it is asked, so that caps hold after a kill.

Each question has a line with its worst case, then a line with what it really took. A question without the second line was
asked by a process that died before the answer came: it counts at its worst case, because it may have been billed.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Taken:
    """Tokens and US dollars; None where no price is known."""

    tokens: int = 0
    cost: float | None = 0.0

    def __add__(self, other: Taken) -> Taken:
        known = self.cost is not None and other.cost is not None
        return Taken(self.tokens + other.tokens, (self.cost or 0.0) + (other.cost or 0.0) if known else None)


class LedgerDamaged(ValueError):
    """The ledger cannot be read, so the rest of a cap is unknown."""


@dataclass
class Ledger:
    """A file that only grows; every line is on the disk before the engineer continues."""

    path: Path

    def asks(self, worst: Taken) -> None:
        self._append({"asked": worst.tokens, "cost": worst.cost})

    def took(self, really: Taken) -> None:
        """What the question that was noted last came to."""
        self._append({"took": really.tokens, "cost": really.cost})

    def _append(self, line: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            if file.tell() and not self.path.read_bytes().endswith(b"\n"):
                file.write(b"\n")  # a process was killed in mid-line
            file.write(json.dumps(line).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def total(self) -> Taken:
        """Of all questions so far. Raises ``LedgerDamaged``."""
        total, open_question = Taken(), Taken()
        for line in self.path.read_bytes().split(b"\n") if self.path.exists() else ():
            try:
                entry = json.loads(line)
                cost = None if entry["cost"] is None else float(entry["cost"])
                if "asked" in entry:
                    total, open_question = total + open_question, Taken(int(entry["asked"]), cost)
                else:
                    total, open_question = total + Taken(int(entry["took"]), cost), Taken()
            except (ValueError, TypeError, KeyError) as error:
                if line.rstrip().endswith(b"}"):
                    raise LedgerDamaged(f"{self.path} is damaged ({error}): bring it back from a copy") from error
                # A line that is empty or was cut off: the question before it, if any, still counts at its worst case.
        return total + open_question
