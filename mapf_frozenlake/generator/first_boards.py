"""The first few boards on a machine that has compiled nothing, drawn by the kernel's own source as plain Python.

Compiling the draw loop takes as long as all else that a first step waits for; without, a board takes some milliseconds.
"""

from __future__ import annotations

from typing import Any

from mapf_frozenlake.generator.kernel import fill_exact
from mapf_frozenlake.uncompiled import is_compiled, uncompiled

MOST = 64  # boards of a process; whoever wants more wants the machine code
MOST_DRAWS = 50  # of a board; a draw takes a millisecond or two
_left = MOST  # 0 where it is compiled, too: that is asked once


def fill_first(count: int, arguments: tuple[Any, ...]) -> bool:
    """Whether the ``count`` boards that ``fill_exact`` is asked for are filled: as it would have, without compiling it.

    False where it is compiled, where boards are many or hard to come by, and where one needs a search: then nothing counts
    of what was written.
    """
    global _left
    if count > _left:
        return False
    if is_compiled(fill_exact, arguments):
        _left = 0
        return False
    _left -= count  # two threads at once may draw a few more: they are the same boards
    return uncompiled(fill_exact)(*arguments) == count
