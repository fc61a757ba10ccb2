"""Spread a range of instances over the cores."""

from __future__ import annotations

import os
import time
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue

CHUNKS_PER_THREAD = 8  # instances differ a thousandfold in cost: small chunks even it out
HEAR_EVERY = 0.1  # seconds: how long Ctrl-C may go unheard where waiting for threads cannot be interrupted
STOP_AGAIN = 0.01  # seconds: a search may overwrite one request to stop, so it is repeated


def in_threads(
    work: Callable[[int, int], None],
    count: int,
    threads: int | None = None,
    *,
    stop: Callable[[], None] | None = None,
    here: bool = True,
) -> None:
    """Call ``work(begin, end)`` over ranges that cover 0..count once; ``work`` must release the GIL to gain from it.

    One thread is the caller's own unless ``here`` is False; in it, Ctrl-C waits for ``work`` to end. In others, Ctrl-C is
    heard at once: ``stop`` has to make running work end soon. The first error of any thread is raised.
    """
    most = threads or available_cores()
    if most == 1 and here:
        work(0, count)
        return
    workers = min(most, max(count, 1))
    chunk = max(1, -(-count // (workers * CHUNKS_PER_THREAD)))
    # None of these is Python inside, as `threading` is: Ctrl-C can land in no line of theirs and leave a lock taken for ever.
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
    """One after the other until somebody has taken the last; ``busy`` has an entry for each thread that has one."""
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
    """Returns when no thread works any more, however often Ctrl-C is pressed meanwhile. Who comes late finds nothing left."""
    while busy:
        try:
            if stop is not None:
                stop()
            time.sleep(STOP_AGAIN)
        except KeyboardInterrupt:
            continue


def available_cores() -> int:
    """The cores this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return os.cpu_count() or 1
