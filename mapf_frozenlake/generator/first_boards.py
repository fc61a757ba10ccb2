"""Draws the first few boards in plain Python while the kernel is not compiled yet.

Compiling the draw loop would double the time to the first step. In plain Python, a board takes some milliseconds.
"""

from __future__ import annotations

from typing import Any

from mapf_frozenlake.generator.kernel import fill_exact
from mapf_frozenlake.uncompiled import is_compiled, uncompiled

MOST = 64  # boards a process; beyond this, compiling pays off
MOST_DRAWS = 50  # draws a board; a draw takes a millisecond or two
_left = MOST  # 0 also when the kernel is compiled: this is checked once


def fill_first(count: int, arguments: tuple[Any, ...]) -> bool:
    """Do the work of one ``fill_exact`` call in plain Python, with the same result; returns whether it did.

    It does not if the kernel is already compiled, if there are many boards, or if a board needs many draws or a search.
    Then the caller must overwrite the rows.
    """
    global _left
    if count > _left:
        return False
    if is_compiled(fill_exact, arguments):
        _left = 0
        return False
    _left -= count  # two threads at once may draw a few more; their boards are the same
    return uncompiled(fill_exact)(*arguments) == count
