"""Splits a reply into tokens, before any meaning."""

from __future__ import annotations

import re
from typing import NamedTuple

from mapf_frozenlake.text.words import WAIT_PHRASES

_TOKEN = re.compile(
    rf"""
      (?P<newline>\n)
    | (?P<cell>[(\[]\s{{0,3}}\d{{1,3}}\s{{0,3}},\s{{0,3}}\d{{1,3}}\s{{0,3}}[)\]])   # (row, col)
    | (?P<wait>\b(?:{WAIT_PHRASES})\b)
    | (?P<tag></?[a-z][a-z_]{{0,20}}/?>|<\|[a-z_]{{1,20}}\|>)
    | (?P<times>(?:\bx|[×*])[ ]?\d{{1,6}}(?!\w))                                    # x3
    | (?P<elided>\.{{3}}|…|\betc\b)
    | (?P<to>->|=>|-->)
    | (?P<comment>//|\#|—|–|[ ]-[ ])
    | (?P<number>\d+)
    | (?P<word>[^\W\d_]+(?:['’][^\W\d_]+)?)
    | (?P<mark>[^\s\ufe0f])
    """,
    re.VERBOSE | re.IGNORECASE,
)


class Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


END = Token("end", "", -1, -1)


def tokens_of(text: str) -> list[Token]:
    """The tokens of a text. A right arrow between two cells, as in (0, 0) → (0, 1), is of the kind "way" and not a move."""
    tokens = [Token(str(match.lastgroup), match.group(), match.start(), match.end()) for match in _TOKEN.finditer(text)]
    for index, (before, token, behind) in enumerate(zip(tokens, tokens[1:], tokens[2:]), start=1):
        if token.text in ("→", "➡") and before.kind == behind.kind == "cell":
            tokens[index] = token._replace(kind="way")
    return tokens
