"""Spread a range of instances over the cores."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

CHUNKS_PER_THREAD = 8  # instances differ a thousandfold in cost: small chunks even it out


def in_threads(work: Callable[[int, int], None], count: int, threads: int | None = None) -> None:
    """Call ``work(begin, end)`` over ranges that cover 0..count once; ``work`` must release the GIL to gain from it."""
    threads = min(threads or available_cores(), max(count, 1))
    if threads == 1:
        work(0, count)
        return
    chunk = max(1, -(-count // (threads * CHUNKS_PER_THREAD)))
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work, begin, min(begin + chunk, count)) for begin in range(0, count, chunk)]:
            done.result()


def available_cores() -> int:
    """The cores this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return os.cpu_count() or 1
