"""Draws the first few boards with the kernel's source as plain Python, where the kernel is not compiled yet.

Compiling the draw loop would double the time to a first step; in plain Python a board takes some milliseconds.
"""

from __future__ import annotations

from typing import Any

from mapf_frozenlake.generator.kernel import fill_exact
from mapf_frozenlake.uncompiled import is_compiled, uncompiled

MOST = 64  # boards of a process; for more than that, compiling pays
MOST_DRAWS = 50  # of a board; a draw takes a millisecond or two
_left = MOST  # 0 where it is compiled, too: that is asked once


def fill_first(count: int, arguments: tuple[Any, ...]) -> bool:
    """Fill the ``count`` boards that ``fill_exact`` is asked for, with the same result, without compiling it; True if it did.

    False where it is compiled already, where there are many boards or a board needs many draws or a search. Then the caller
    must overwrite what was written.
    """
    global _left
    if count > _left:
        return False
    if is_compiled(fill_exact, arguments):
        _left = 0
        return False
    _left -= count  # two threads at once may draw a few more: they are the same boards
    return uncompiled(fill_exact)(*arguments) == count
