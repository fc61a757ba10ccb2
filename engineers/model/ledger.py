"""``Ledger``: a record of each question to a model, written before it is asked, so that caps hold after a kill.

Each question has a line with its worst case, later a line with what it really took. A question without the second line was
asked by a process that died before the answer came: it counts at its worst case, because it may have been billed.
Where several are open at a time, the second line names the first one by its number in the file.
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

    def asks(self, worst: Taken) -> int:
        """The line of the file on which the question is noted, counted from 1."""
        return self._append({"asked": worst.tokens, "cost": worst.cost})

    def took(self, really: Taken, line: int | None = None) -> None:
        """What the question that was noted on this line came to; the one that was noted last if none is given."""
        of = {} if line is None else {"line": line}
        self._append({"took": really.tokens, "cost": really.cost, **of})

    def _append(self, entry: dict[str, Any]) -> int:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            before = self.path.read_bytes()
            if before and not before.endswith(b"\n"):
                file.write(b"\n")  # a process was killed in mid-line
                before += b"\n"
            file.write(json.dumps(entry).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        return before.count(b"\n") + 1

    def total(self) -> Taken:
        """Of all questions so far. Raises ``LedgerDamaged``."""
        total, last = Taken(), 0
        still_open: dict[int, Taken] = {}  # by line
        for number, line in enumerate(self.path.read_bytes().split(b"\n") if self.path.exists() else (), start=1):
            try:
                entry = json.loads(line)
                cost = None if entry["cost"] is None else float(entry["cost"])
                if "asked" in entry:
                    still_open[number], last = Taken(int(entry["asked"]), cost), number
                else:
                    total += Taken(int(entry["took"]), cost)
                    still_open.pop(entry.get("line", last), None)
            except (ValueError, TypeError, KeyError) as error:
                if line.rstrip().endswith(b"}"):
                    raise LedgerDamaged(f"{self.path} is damaged ({error}): bring it back from a copy") from error
                # A line that is empty or was cut off: the question before it, if any, still counts at its worst case.
        return sum(still_open.values(), total)
