"""How threads share the envs of a batch: each takes the next few from one counter until none are left.

So a thread that starts late, or is put aside by the system, takes fewer. Envs do not read each other: who takes which, and in
how many threads, does not show in what comes out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from mapf_frozenlake.threads import in_turns
from mapf_frozenlake.world.jit import kernel, part

ALONE = 0  # in place of the counters' address: one thread takes everything in one turn
_TAKEN, _DONE, _ENDED = 0, 8, 16  # bytes: envs that were taken, envs that are done, episodes that this ended
_TURNS_LOG2 = (
    7  # so many turns, as a power of two: the last to end keeps the others waiting for a hundredth of the work
)
_PATIENCE = 1 << 14  # looks, some microseconds of them, before a core is left to others


@intrinsic
def _add(typing_context, address, amount):
    """What stood at an int64 address before ``amount`` was added to it. All that this thread wrote before is seen by now."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.atomic_rmw("add", pointer, args[1], "acq_rel")

    return types.int64(types.int64, types.int64), generate


@part
def next_turn(turns, low, high, ended, count):
    """The next [low, high) of ``count`` to work on; low = high where none are left.

    The last turn was [low, high), 0 and 0 at first, and ``ended`` so many episodes.
    """
    if turns == ALONE:
        return high, np.int64(count)
    if high > low:
        _add(turns + _ENDED, ended)
        _add(turns + _DONE, high - low)
    size = max(1, count >> _TURNS_LOG2)
    begin = min(count, _add(turns + _TAKEN, size))
    return begin, min(count, begin + size)


@kernel
def _all_done(turns, count):
    looks = 0
    while _add(turns + _DONE, 0) != count and looks < _PATIENCE:
        looks += 1
    return looks < _PATIENCE


@kernel
def _call_off(turns, count):
    """Leave no turn to whoever comes late, and wait for those that were taken."""
    begun = min(count, _add(turns + _TAKEN, count))
    while _add(turns + _DONE, 0) != begun:
        pass


class _Memory:
    """Where an array lies, and nothing that keeps it there."""

    def __init__(self, array: NDArray) -> None:
        self.__array_interface__ = array.__array_interface__


def unowned(array: NDArray) -> NDArray:
    """The same memory. A thread that comes late may hold this for a while, and does not count as who holds the array."""
    return np.asarray(_Memory(array))


def share(work: Callable[..., int], before: tuple[Any, ...], after: tuple[Any, ...], count: int, threads: int) -> int:
    """``work(*before, turns, *after)`` over ``count`` envs in so many threads: how many episodes that ended, or what is below 0
    where ``work`` refuses."""
    if threads == 1:
        return work(*before, ALONE, *after)
    counters: NDArray[np.int64] = np.zeros(3, np.int64)
    turns = counters.ctypes.data
    returned: list[int] = []

    def take_part(_kept_alive: NDArray[np.int64] = counters) -> None:
        returned.append(work(*before, turns, *after))

    try:
        in_turns(take_part, threads, lambda: min(returned) < 0 or _all_done(turns, count))
    finally:
        _call_off(turns, count)
    return min(returned) if min(returned) < 0 else int(counters[_ENDED // 8])
