"""Shares work among threads of this process. Compiled code releases the GIL, so that it runs on several cores at once.

``in_threads`` is for work of seconds, which Ctrl-C may stop; ``in_turns`` is for work that is shorter than a thread's start.
"""

from __future__ import annotations

import os
import time
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from queue import Empty, SimpleQueue

import numpy as np

from mapf_frozenlake.errors import LakeError

CHUNKS_PER_THREAD = 8  # small chunks, because instances differ a thousandfold in cost
HEAR_EVERY = 0.1  # seconds until Ctrl-C is noticed, because a wait for threads cannot be interrupted
STOP_AGAIN = 0.01  # seconds: a search may overwrite one request to stop, so it is repeated
LOOK_AGAIN = 5e-5  # seconds, for a thread that the system suspends in the middle of a turn


def thread_count(num_threads: int | None) -> int:
    """The number of threads; None: one for each core."""
    if num_threads is None:
        return available_cores()
    if not isinstance(num_threads, int | np.integer) or num_threads < 1:
        raise LakeError(f"num_threads={num_threads!r}: give a whole number, 1 or more, or None for one per core")
    return int(num_threads)


def available_cores() -> int:
    """The cores this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return os.cpu_count() or 1


def in_threads(
    work: Callable[[int, int], None],
    count: int,
    num_threads: int | None = None,
    *,
    stop: Callable[[], None] | None = None,
    here: bool = True,
) -> None:
    """Call ``work(begin, end)`` over ranges that cover 0..count once; ``work`` must release the GIL to gain from it.

    One thread is the caller's own unless ``here`` is False; there, Ctrl-C waits for ``work`` to end. With other threads, Ctrl-C
    acts at once, and ``stop`` must make running work end soon. The first error of any thread is raised.
    """
    most = thread_count(num_threads)
    if most == 1 and here:
        work(0, count)
        return
    workers = min(most, max(count, 1))
    chunk = max(1, -(-count // (workers * CHUNKS_PER_THREAD)))
    # These are not written in Python, unlike `threading`, so that Ctrl-C cannot interrupt them and leave a lock held for ever.
    left, busy = deque(range(0, count, chunk)), deque[bool]()
    ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def run() -> None:
        error = None
        try:
            for begin in _taken_from(left, busy):
                work(begin, min(begin + chunk, count))
        except BaseException as failure:
            error = failure
        ended.put(error)

    try:
        for _ in range(workers):
            start_new_thread(run, ())
        for _ in range(workers):
            if (error := _wait_for(ended)) is not None:
                raise error
    except BaseException:
        left.clear()
        _end(busy, stop)
        raise


def _taken_from(left: deque[int], busy: deque[bool]) -> Iterator[int]:
    """Take chunks one after the other until all are taken; ``busy`` has an entry for each thread that works on one."""
    while True:
        busy.append(True)
        try:
            yield left.popleft()
        except IndexError:
            return
        finally:
            busy.pop()


def _wait_for(ended: SimpleQueue[BaseException | None]) -> BaseException | None:
    while True:
        try:
            return ended.get(timeout=HEAR_EVERY)
        except Empty:
            continue


def _end(busy: deque[bool], stop: Callable[[], None] | None) -> None:
    """Returns when no thread works any more, even if Ctrl-C is pressed again. Late threads find no work."""
    while busy:
        try:
            if stop is not None:
                stop()
            time.sleep(STOP_AGAIN)
        except KeyboardInterrupt:
            continue


_helpers: list[SimpleQueue[Callable[[], object]]] = []  # the next task of each thread of ``in_turns``


def in_turns(work: Callable[[int], object], num_threads: int, is_done: Callable[[], bool]) -> None:
    """Call ``work(0)`` here and ``work(1)`` … in other threads at the same time, until ``is_done``.

    Each thread takes turns until all are taken. A late thread finds no turn, and the others do not wait for it. So threads
    that the system does not schedule cost no time.
    """
    while len(_helpers) < num_threads - 1:
        _helpers.append(SimpleQueue())
        start_new_thread(_help, (_helpers[-1],))
    for who, inbox in enumerate(_helpers[: num_threads - 1], start=1):
        if inbox.empty():
            inbox.put(partial(work, who))
    work(0)
    while not is_done():
        time.sleep(LOOK_AGAIN)


def _help(inbox: SimpleQueue[Callable[[], object]]) -> None:
    while True:
        inbox.get()()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.clear)  # a fork copies no threads
