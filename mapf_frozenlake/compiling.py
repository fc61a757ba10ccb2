"""The first time that a process compiles one of our kernels, it says so on stderr: compiling takes seconds and shows nothing.

Numba reports what it compiles, not what it finds in the cache, so this costs nothing where everything is cached.
"""

from __future__ import annotations

import multiprocessing
import os
import sys

from numba.core.event import Event, Listener, register

QUIET = "MAPF_FROZENLAKE_QUIET"  # set to 1, nothing is said
WORKERS_HAVE = ("RAY_RAYLET_PID", "LOCAL_RANK")  # set by Ray, torchrun and accelerate in the processes that they start
NOTICE = (
    "mapf_frozenlake: compiling for this machine, about 10 s of CPU to an environment's first step, 30 s for generate and "
    f"solve; cached from then on. `python -m mapf_frozenlake.warmup` compiles everything; {QUIET}=1 hides this line."
)


class Notice(Listener):
    """Prints ``NOTICE`` once, at the first kernel of this package."""

    given = False

    def on_start(self, event: Event) -> None:
        if self.given or not event.data["dispatcher"].py_func.__module__.startswith("mapf_frozenlake."):
            return
        self.given = True
        if os.environ.get(QUIET) != "1" and not in_a_worker():
            print(NOTICE, file=sys.stderr, flush=True)

    def on_end(self, event: Event) -> None:
        """Nothing is left to say."""


def in_a_worker() -> bool:
    """Whether another process started this one to share its work: that one's user need not hear it from each."""
    return multiprocessing.parent_process() is not None or any(name in os.environ for name in WORKERS_HAVE)


notice = Notice()
register("numba:compile", notice)
