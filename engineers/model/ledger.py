"""``Ledger``: a record of each question to a model, written before it is asked, so that caps hold after a kill.

Each question has a line with its worst case, and later a line with its real cost. If the second line is missing, the process
died before the answer came: the question counts at its worst case, because it may have been billed. If several questions
are open at once, the second line names the first one by its number in the file.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engineers.shared.errors import UserError
from engineers.shared.lines import append_line
from engineers.shared.sentences import in_sentences
from engineers.shared.untrusted import NotReadable, parsed, read_bytes

MOST_TOKENS, MOST_DOLLARS = 10**12, 1e9  # tokens of one question; a line with more is damaged


@dataclass(frozen=True)
class Taken:
    """Tokens and US dollars; None without a known price."""

    tokens: int = 0
    cost: float | None = 0.0

    def __add__(self, other: Taken) -> Taken:
        known = self.cost is not None and other.cost is not None
        return Taken(self.tokens + other.tokens, (self.cost or 0.0) + (other.cost or 0.0) if known else None)


CAPS = ("max_cost", "max_total_tokens")  # options that bound the cost of all questions together


def with_caps_left(options: Mapping[str, Any], taken: Taken) -> dict[str, Any]:
    """The options of an engineer that is made anew, with its caps less what earlier ones have taken of them."""
    left = dict(options)
    for cap, already in zip(CAPS, (taken.cost or 0.0, taken.tokens), strict=True):
        if (given := options.get(cap)) is not None:
            left[cap] = max(type(given)(0), given - already)  # a whole number stays one
    return left


class LedgerDamaged(UserError, ValueError):
    """The ledger cannot be read, so the rest of a cap is unknown."""


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    asked: int | None = Field(None, ge=0, le=MOST_TOKENS)
    took: int | None = Field(None, ge=0, le=MOST_TOKENS)
    cost: float | None = Field(ge=0, le=MOST_DOLLARS)
    line: int | None = Field(None, ge=1)
    check: int | None = None  # missing in older ledgers

    @property
    def taken(self) -> Taken:
        return Taken(self.asked if self.asked is not None else self.took or 0, self.cost)


@dataclass
class Ledger:
    """A file that only grows; every line is on the disk before the engineer continues."""

    path: Path

    def asks(self, worst: Taken) -> int:
        """The line of the file on which the question is noted, counted from 1."""
        return self._append({"asked": worst.tokens, "cost": worst.cost})

    def took(self, really: Taken, line: int | None = None) -> None:
        """Write the real cost of the question on this line; by default, of the last question."""
        of = {} if line is None else {"line": line}
        self._append({"took": really.tokens, "cost": really.cost, **of})

    def _append(self, entry: dict[str, Any]) -> int:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        before = self._read()
        if before and not before.endswith(b"\n"):
            before += b"\n"  # a process was killed in mid-line
        append_line(self.path, json.dumps(entry | {"check": _check(entry, zlib.crc32(before))}).encode())
        return before.count(b"\n") + 1

    def _read(self) -> bytes:
        try:
            return read_bytes(self.path) or b""
        except NotReadable as error:
            raise LedgerDamaged(f"{self.path} {error}: restore it from a copy") from error

    def total(self) -> Taken:
        """Of all questions so far. Raises ``LedgerDamaged``."""
        total, last, before = Taken(), 0, 0
        still_open: dict[int, Taken] = {}  # by line
        for number, text in enumerate(self._read().split(b"\n"), start=1):
            sofar, before = before, zlib.crc32(text + b"\n", before)
            if _is_cut_off(text):  # the question before it, if any, still counts at its worst case
                continue
            line = self._line(text, number, sofar)
            if line.asked is not None:
                still_open[number], last = line.taken, number
            else:
                total += line.taken
                still_open.pop(line.line or last, None)
        return sum(still_open.values(), total)

    def _line(self, text: bytes, number: int, before: int) -> _Line:
        try:
            entry = parsed(text)
            line = _Line.model_validate(entry)
            if (line.asked is None) == (line.took is None):
                raise NotReadable("is neither a question nor a cost")
            if line.check is not None and line.check != _check(entry, before):
                raise NotReadable("differs from what was written")
        except (NotReadable, ValidationError) as error:
            reason = in_sentences(error) if isinstance(error, ValidationError) else error
            raise LedgerDamaged(f"{self.path} is damaged (line {number}: {reason}): restore it from a copy") from error
        return line


def _check(entry: dict[str, Any], before: int) -> int:
    """The digest of a line's other values and of the line before it, so that a changed or a missing line is found."""
    return zlib.crc32(json.dumps({name: value for name, value in entry.items() if name != "check"}).encode(), before)


_NUMBER = re.compile(rb"-?[0-9][0-9.e+-]*")
_WHOLE = [
    b'{"%s": 0, "cost": %s%s, "check": 0' % (kind, cost, line)
    for kind in (b"asked", b"took")
    for cost in (b"0", b"null")
    for line in (b"", b', "line": 0')
]


def _is_cut_off(text: bytes) -> bool:
    """Whether this is empty or the beginning of a line."""
    bare = _NUMBER.sub(b"0", text.strip())
    return any(whole.startswith(bare) for whole in _WHOLE)
