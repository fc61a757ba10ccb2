"""``ParseError``: why a reply is not a plan. A value, not an exception: a bad reply is data."""

from __future__ import annotations

from dataclasses import dataclass

EXCERPT_LENGTH = 40


@dataclass(frozen=True)
class ParseError:
    """The place where reading stopped and the reason, in one sentence that can go back to the writer."""

    why: str
    offset: int = 0  # characters into the reply
    line: int = 1  # 1-based
    column: int = 1  # 1-based
    excerpt: str = ""  # the text at that place

    @classmethod
    def at(cls, reply: str, offset: int, why: str) -> ParseError:
        before = reply[:offset]
        last_break = before.rfind("\n")
        excerpt = reply[offset : offset + EXCERPT_LENGTH].split("\n", 1)[0].strip()
        return cls(why, offset, before.count("\n") + 1, offset - last_break, excerpt)

    def __str__(self) -> str:
        where = f"line {self.line}, column {self.column}"
        return f"{where}, at {self.excerpt!r}: {self.why}" if self.excerpt else f"{where}: {self.why}"


class Refused(Exception):
    """Stops reading early; becomes the returned ``ParseError``."""

    def __init__(self, offset: int, why: str) -> None:
        super().__init__(why)
        self.offset, self.why = offset, why
