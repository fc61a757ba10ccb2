"""Written moves, and their meaning within a whole answer."""

from __future__ import annotations

import re
from typing import NamedTuple

from mapf_frozenlake.text.errors import Refused
from mapf_frozenlake.text.tokens import Token
from mapf_frozenlake.text.words import (
    COMPASS_EVIDENCE,
    COMPASS_LETTERS,
    MOVE_ARROWS,
    MOVE_WORDS,
    RELATIVE_EVIDENCE,
    RELATIVE_LETTERS,
)

# Letters in a row; but "NE" alone may be a diagonal, which is no move.
_COMPACT = re.compile(r"(?![NS][EW]$)(?:[LRUDWS]{2,}|[NESW]{2,})")


class Move(NamedTuple):
    """A move as it was written: a word, a letter of one of two alphabets, or an arrow."""

    text: str  # lower case
    start: int


def moves_in(token: Token) -> list[Move]:
    """The moves of this token; empty if it is not a move."""
    if token.kind == "wait":
        return [Move("wait", token.start)]
    if token.kind == "mark":
        return [Move(token.text, token.start)] if token.text in MOVE_ARROWS else []
    if token.kind != "word":
        return []
    word = token.text.lower()
    if word in MOVE_WORDS or word in RELATIVE_LETTERS or word in COMPASS_LETTERS:
        return [Move(word, token.start)]
    if _COMPACT.fullmatch(token.text):
        return [Move(letter.lower(), token.start + index) for index, letter in enumerate(token.text)]
    return []


def separated(written: list[Move]) -> list[Move]:
    """A right arrow between words separates them; arrows alone are moves; a mixture is an error."""
    arrows = [move for move in written if move.text in MOVE_ARROWS]
    if not arrows or len(arrows) == len(written):
        return written
    odd = next((arrow for arrow in arrows if arrow.text not in "→➡"), None)
    if odd is not None:
        raise Refused(odd.start, "arrows and words are mixed: write every move as a word")
    return [move for move in written if move.text not in MOVE_ARROWS]


def actions_of(lists: list[list[Move]]) -> list[list[int]]:
    """The actions of one answer's lists. The answer's other words and letters decide the meaning of W and S."""
    written = {move.text for moves in lists for move in moves}
    compass = bool(written & COMPASS_EVIDENCE)
    relative = bool(written & RELATIVE_EVIDENCE)
    if compass == relative:  # both or neither alphabet: the letters are ambiguous
        doubtful = next((move for moves in lists for move in moves if move.text in COMPASS_LETTERS), None)
        if doubtful is not None:
            letter = doubtful.text.upper()
            raise Refused(
                doubtful.start, f"{letter!r} may be one of L R U D W or one of N E S W here: write the moves as words"
            )
    table: dict[str, int] = {**MOVE_WORDS, **MOVE_ARROWS, **RELATIVE_LETTERS}
    if compass:
        table |= COMPASS_LETTERS
    return [[int(table[move.text]) for move in moves] for moves in lists]
