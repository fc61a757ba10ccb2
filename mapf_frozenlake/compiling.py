"""Prints a notice on stderr when a process first compiles one of our kernels, because compiling takes seconds in silence.

Numba reports compilations, but not cache hits, so this costs nothing if everything is cached.
"""

from __future__ import annotations

import multiprocessing
import os
import sys

from mapf_frozenlake.numba_private import Event, Listener, register

QUIET = "MAPF_FROZENLAKE_QUIET"  # 1 suppresses the notice
# Ray, torchrun and accelerate set these in the processes that they start.
WORKERS_HAVE = ("RAY_RAYLET_PID", "LOCAL_RANK")
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
        """The notice was printed, or is not wanted."""


def in_a_worker() -> bool:
    """Whether another process started this one to share its work. The user needs the notice only once."""
    return multiprocessing.parent_process() is not None or any(name in os.environ for name in WORKERS_HAVE)


notice = Notice()
register("numba:compile", notice)
