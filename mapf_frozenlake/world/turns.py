"""How threads share the envs of a batch: each has a part of them, takes a few at a time, and then helps the others with theirs.

So each core keeps the same envs in its cache, and a thread that starts late, or is put aside by the system, takes fewer. Envs do
not read each other: who takes which, and in how many threads, does not show in what comes out.
"""

from __future__ import annotations

import ctypes
import itertools
import weakref
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from mapf_frozenlake.threads import in_turns
from mapf_frozenlake.world.jit import kernel, part

ALONE = 0  # in place of an address: one thread takes everything in one turn
# What threads count, as bytes from the address of the first cache line. Each thread has a line of its own behind it, by which
# it is told apart.
_DONE, _ENDED, _BELL_AT, _LINE = 0, 8, 16, 64  # envs that are done; episodes that this ended; where the bell is
_TAKEN, _WHO, _THREADS, _NUMBER = (
    0,
    8,
    16,
    24,
)  # in a thread's line: taken of its part, its number, how many threads, which work
_TURNS_LOG2 = (
    7  # so many turns, as a power of two: the last to end keeps the others waiting for a hundredth of the work
)
_PATIENCE = 1 << 14  # looks, some microseconds of them, before a core is left to others
_LINGERING = (
    1 << 16
)  # looks of a thread that has helped, whether there is more to do: to wake it takes longer than a short step
_REMEMBERED = 8  # arrays whose memory is known; a batch writes to a few in turn
_BELL = np.zeros(8, np.int64)  # the number of the latest work that any thread of this process has begun
_numbers = itertools.count(1)


@intrinsic
def _add(typing_context, address, amount):
    """What stood at an int64 address before ``amount`` was added to it. All that this thread wrote before is seen by now."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.atomic_rmw("add", pointer, args[1], "acq_rel")

    return types.int64(types.int64, types.int64), generate


@intrinsic
def _look(typing_context, address):
    """What stands at an int64 address now."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(builder.inttoptr(args[0], ir.IntType(64).as_pointer()), "acquire", 8)

    return types.int64(types.int64), generate


@part
def next_turn(turns, low, high, ended, count):
    """The next [low, high) of ``count`` to work on; low = high where none are left.

    The last turn was [low, high), 0 and 0 at first, and ``ended`` so many episodes. ``turns`` is the address of a thread's line.
    """
    if turns == ALONE:
        return high, np.int64(count)
    who, threads = _look(turns + _WHO), _look(turns + _THREADS)
    lines = turns - who * _LINE
    bell, number = _look(lines - _LINE + _BELL_AT), _look(turns + _NUMBER)
    if high > low:
        _add(lines - _LINE + _ENDED, ended)
        _add(lines - _LINE + _DONE, high - low)
    elif who == 0:
        _add(bell, number - _look(bell))  # whoever lingers comes, now that this thread leaves the GIL to others
    size = max(1, count >> _TURNS_LOG2)
    for helped in range(threads):
        whose = (who + helped) % threads
        end = (whose + 1) * count // threads
        begin = whose * count // threads + _add(lines + whose * _LINE + _TAKEN, size)
        if begin < end:
            return begin, min(end, begin + size)
    looks = 0
    while who > 0 and _look(bell) <= number and looks < _LINGERING:
        looks += 1
    return np.int64(count), np.int64(count)


@kernel
def _all_done(lines, count):
    looks = 0
    while _look(lines + _DONE) != count and looks < _PATIENCE:
        looks += 1
    return looks < _PATIENCE


@kernel
def _call_off(lines, threads, count):
    """Leave no turn to whoever comes late, and wait for those that were taken."""
    begun = 0
    for one in range(threads):
        size = (one + 1) * count // threads - one * count // threads
        begun += min(size, _add(lines + (one + 1) * _LINE + _TAKEN, count))
    while _look(lines + _DONE) != begun:
        pass


class _Memory:
    """Where an array lies, and nothing that keeps it there."""

    def __init__(self, array: NDArray) -> None:
        self.__array_interface__ = array.__array_interface__


def unowned(array: NDArray) -> NDArray:
    """The same memory. A thread that comes late may hold this for a while, and does not count as who holds the array."""
    return np.asarray(_Memory(array))


class Unowned:
    """The memory of arrays that come again and again. To look up where one lies takes numpy as long as a short step takes a thread."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[NDArray], NDArray]] = {}

    def __call__(self, array: NDArray) -> NDArray:
        """``unowned`` of an observation, as [n, A, numbers]."""
        known = self._known.get(id(array))
        if known is not None and known[0]() is array:
            return known[1]
        if len(self._known) >= _REMEMBERED:  # by a caller that keeps every array
            self._known.clear()
        flat = unowned(array.reshape(*array.shape[:2], -1))
        self._known[id(array)] = weakref.ref(array), flat
        return flat


def share(work: Callable[..., int], before: tuple[Any, ...], after: tuple[Any, ...], envs: int, threads: int) -> int:
    """``work(*before, turns, *after)`` over so many envs in so many threads: how many episodes that ended, or what is below 0
    where ``work`` refuses."""
    if threads == 1:
        return work(*before, ALONE, *after)
    counts = _counts(threads)
    lines = ctypes.addressof(counts)
    returned: list[int] = []

    def take_part(who: int, _kept_alive: ctypes.Array[ctypes.c_int64] = counts) -> None:
        returned.append(work(*before, lines + (who + 1) * _LINE, *after))

    try:
        in_turns(take_part, threads, lambda: min(returned) < 0 or _all_done(lines, envs))
    finally:
        _call_off(lines, threads, envs)
    return min(returned) if min(returned) < 0 else counts[_ENDED // 8]


def _counts(threads: int) -> ctypes.Array[ctypes.c_int64]:
    """What threads count in a work of its own, nothing counted yet. ``ctypes`` says where it lies sooner than numpy does."""
    counts = _template(threads)
    counts = type(counts).from_buffer_copy(counts)
    number = next(_numbers)
    for who in range(threads):
        counts[((who + 1) * _LINE + _NUMBER) // 8] = number
    return counts


@cache
def _template(threads: int) -> ctypes.Array[ctypes.c_int64]:
    counts = (ctypes.c_int64 * ((threads + 1) * _LINE // 8))()
    counts[_BELL_AT // 8] = _BELL.ctypes.data
    for who in range(threads):
        counts[((who + 1) * _LINE + _WHO) // 8] = who
        counts[((who + 1) * _LINE + _THREADS) // 8] = threads
    return counts
