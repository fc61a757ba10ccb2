"""Spread a range of instances over the cores."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait

CHUNKS_PER_THREAD = 8  # instances differ a thousandfold in cost: small chunks even it out
HEAR_EVERY = 0.1  # seconds: how long Ctrl-C may go unheard where waiting for threads cannot be interrupted
STOP_AGAIN = 0.01  # seconds: a search may overwrite one request to stop, so it is repeated


def in_threads(
    work: Callable[[int, int], None], count: int, threads: int | None = None, *, stop: Callable[[], None] | None = None
) -> None:
    """Call ``work(begin, end)`` over ranges that cover 0..count once; ``work`` must release the GIL to gain from it.

    One thread is the caller's own, in which Ctrl-C waits for ``work`` to end. In more, Ctrl-C is heard at once: ``stop`` has
    to make running work end soon.
    """
    most = threads or available_cores()
    if most == 1:
        work(0, count)
        return
    workers = min(most, max(count, 1))
    chunk = max(1, -(-count // (workers * CHUNKS_PER_THREAD)))
    pool = ThreadPoolExecutor(workers)
    running: list[Future] = [pool.submit(work, begin, min(begin + chunk, count)) for begin in range(0, count, chunk)]
    try:
        while wait(running, HEAR_EVERY, FIRST_EXCEPTION).not_done and not any(_failed(one) for one in running):
            pass
        for done in running:
            done.result()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        if stop is not None:
            while not all(one.done() for one in running):  # `wait` would wait for cancelled ones for ever
                stop()
                time.sleep(STOP_AGAIN)
        raise
    finally:
        pool.shutdown()


def _failed(one: Future) -> bool:
    return one.done() and not one.cancelled() and one.exception() is not None


def available_cores() -> int:
    """The cores this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return os.cpu_count() or 1
