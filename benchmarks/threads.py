"""The cost of a second thread in CPU time: ``python -m benchmarks.threads``. The machine may be busy with other work.

For a step of ``gym.make_vec`` (4 agents on 8×8) it measures the CPU time of both threads over that of one thread alone, and the part
of a step that only the caller's thread can do. From these follows the best possible speed-up with two threads. To measure the real
speed-up, you need two idle cores: ``python -m benchmarks.throughput --threads 2``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._command import arguments_of, command, record_if_asked
from benchmarks.throughput import lake, make_vector, tape_of
from mapf_frozenlake.world import batch as batches
from mapf_frozenlake.world import turns

ENVS, ROUNDS = 1024, 12
KINDS: dict[str, dict[str, Any]] = {
    "11×11": {"window": 11},
    "5×5": {"window": 5},
    "compact": {"observation": "compact"},
    "11×11, random moves and resets": {"window": 11, "random": True},
}


class Shared:
    """Work that threads share: what the caller's thread spends in it."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def timed(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*given: Any) -> Any:
            if threading.current_thread() is not threading.main_thread():
                return work(*given)
            begin = time.thread_time()
            try:
                return work(*given)
            finally:
                self.seconds += time.thread_time() - begin

        return wrapped


def measured(vector: Any, tape: NDArray[np.int64], shared: Shared) -> tuple[float, float, float]:
    """Microseconds of CPU a step: of all threads, of the caller's, and of the caller's outside of shared work."""
    vector.reset(seed=0)
    shared.seconds, every, own = 0.0, time.process_time(), time.thread_time()
    for actions in tape:
        vector.step(actions)
    every, own = time.process_time() - every, time.thread_time() - own
    return tuple(1e6 * seconds / len(tape) for seconds in (every, own, own - shared.seconds))  # type: ignore[return-value]


def row(config: Any, shared: Shared, random: bool = False, **kwargs: Any) -> dict[str, float]:
    """One kind of batch; medians over rounds in which one thread and two take turns."""
    tape = tape_of(config, ENVS, random)
    vectors = [make_vector(config, ENVS, num_threads=count, **kwargs) for count in (1, 2)]
    for vector in vectors:
        batch = vector.unwrapped.batch
        batch._step_kernel = shared.timed(batch._step_kernel)
        measured(vector, tape, shared)  # everything is compiled
    rounds = [[measured(vector, tape, shared) for vector in vectors] for _ in range(ROUNDS)]
    (alone, _, serial), (together, _, serial_of_two) = np.median(rounds, axis=0).tolist()
    return {
        "microseconds_a_step": round(alone),
        "cpu_of_two_over_one": round(together / alone, 2),
        "serial_part": round(serial / alone, 2),
        "serial_microseconds": round(serial),
        "serial_microseconds_of_two": round(serial_of_two),
        "at_best": round(alone / (serial_of_two + (alone - serial) / 2), 2),
    }


def main() -> None:
    arguments = arguments_of(command(__doc__))
    shared = Shared()
    for owner, name in ((batches.kernels, "begin_envs"), (batches.kernels, "keep_seen"), (turns, "_all_done")):
        setattr(owner, name, shared.timed(getattr(owner, name)))
    table = {kind: row(lake(8, 4), shared, **kwargs) for kind, kwargs in KINDS.items()}
    for kind, figures in table.items():
        print(kind, figures)
    record_if_asked(arguments, "threads", {"envs": ENVS, "rounds": ROUNDS, "kinds": table})


if __name__ == "__main__":
    main()
