"""Shares the envs of a batch among threads: each thread takes a few envs of its own part at a time, then helps the others.

So each core keeps the same envs in its cache, and a thread that starts late, or that the system suspends, takes fewer. Envs do
not read each other, so the results do not depend on the threads.
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
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from mapf_frozenlake.threads import in_turns
from mapf_frozenlake.world.jit import kernel, subkernel

ALONE = 0  # instead of an address: one thread takes all envs in one turn
# The threads' counters, as bytes from the address of the first cache line. Each thread has its own line behind it, whose
# address identifies the thread.
_DONE, _ENDED, _BELL_AT, _LINE = 0, 8, 16, 64  # envs that are done; episodes that ended; the bell's address
# In a thread's line: taken of its part, its number, how many threads, which work.
_TAKEN, _WHO, _THREADS, _NUMBER = 0, 8, 16, 24
# Number of turns, as a power of two: the other threads wait for the last one for at most a hundredth of the work.
_TURNS_LOG2 = 7
_PATIENCE = 1 << 14  # reads, which take some microseconds, before the thread yields its core
_LINGERING = 1 << 16  # reads of an idle thread before it sleeps, because waking it takes longer than a short step
_REMEMBERED = 8  # arrays whose addresses are kept; a batch writes to a few in turn
_BELL = np.zeros(8, np.int64)  # number of the latest work that a thread of this process has begun
_numbers = itertools.count(1)


@intrinsic
def _add(typing_context, address, amount):
    """Atomically add ``amount`` at an int64 address; returns the old value. Publishes all earlier writes of this thread."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.atomic_rmw("add", pointer, args[1], "acq_rel")

    return types.int64(types.int64, types.int64), generate


@intrinsic
def _look(typing_context, address):
    """The present value at an int64 address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(builder.inttoptr(args[0], ir.IntType(64).as_pointer()), "acquire", 8)

    return types.int64(types.int64), generate


@subkernel
def next_turn(turns, low, high, ended, count):
    """The next range [low, high) of ``count`` to work on; low = high when all are taken.

    ``low`` and ``high`` are the last turn's, 0 and 0 at first; it ended ``ended`` episodes. ``turns`` is the address of a
    thread's line. Callers give int64 and no literal numbers, for which numba would compile it again.
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
        _add(bell, number - _look(bell))  # a thread that lingers can come now, because this thread releases the GIL
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
    """Take all remaining turns from late threads, and wait for the turns that were taken."""
    begun = 0
    for one in range(threads):
        size = (one + 1) * count // threads - one * count // threads
        begun += min(size, _add(lines + (one + 1) * _LINE + _TAKEN, count))
    while _look(lines + _DONE) != begun:
        pass


class _Memory:
    """An array's address, without a reference that keeps the array alive."""

    def __init__(self, array: NDArray) -> None:
        self.__array_interface__ = array.__array_interface__


def unowned(array: NDArray) -> NDArray:
    """A view of the same memory that does not count as a reference: a late thread may hold it for a while."""
    return np.asarray(_Memory(array))


class Unowned:
    """The addresses of arrays that recur. Numpy takes as long to look up an address as a thread takes for a short step."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[NDArray], NDArray]] = {}

    def __call__(self, array: NDArray) -> NDArray:
        """``unowned`` of an observation, as [n, A, numbers]."""
        known = self._known.get(id(array))
        if known is not None and known[0]() is array:
            return known[1]
        if len(self._known) >= _REMEMBERED:  # for a caller that keeps every array
            self._known.clear()
        flat = unowned(array.reshape(*array.shape[:2], -1))
        self._known[id(array)] = weakref.ref(array), flat
        return flat


def share(work: Callable[..., int], before: tuple[Any, ...], after: tuple[Any, ...], envs: int, threads: int) -> int:
    """Run ``work(*before, turns, *after)`` over all envs in several threads; returns the number of episodes that ended, or the
    negative result with which ``work`` refuses."""
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
    """Fresh counters for one work. ``ctypes`` gives their address faster than numpy does."""
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
