"""CPU seconds without compiled code: to the first step of an environment, and to the first boards and plan.

    python -m benchmarks.cold_start [--old COMMIT] [--turns 1]

Each is measured in its own process with an empty cache, and then in another one that finds the first one's compiled code. With ``--old``,
that commit's code is measured at the same time as this one's, so that other work on the machine slows both.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks._record import record

ROOT = Path(__file__).parents[1]
CODE = {
    "first step": """
import gymnasium as gym, mapf_frozenlake
env = gym.make("MAPFFrozenLake-v0")
env.reset(seed=0)
env.step(env.action_space.sample())
""",
    "first boards and plan": """
import mapf_frozenlake as mfl
config = mfl.LakeConfig.single(5, 3, hole_ratio=0.2, wait_ratio=0.5)
mfl.solve(mfl.generate(config, n=100, seed=0)[0])
""",
}
SAY = "\nimport time\nprint(time.process_time())\n"


def started(code: str, folder: Path, cache: str) -> subprocess.Popen[str]:
    environment = os.environ | {"NUMBA_CACHE_DIR": cache, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code + SAY]
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)


Table = dict[str, dict[str, float]]  # by what is waited for and by place


def measured(codes: dict[str, str], places: dict[str, Path]) -> tuple[Table, Table]:
    """One turn: with an empty cache, and with what that has compiled."""
    cold, compiled = dict[str, dict[str, float]](), dict[str, dict[str, float]]()
    for what, code in codes.items():
        with contextlib.ExitStack() as stack:
            caches = {name: stack.enter_context(tempfile.TemporaryDirectory()) for name in places}
            for table in (cold, compiled):
                running = {name: started(code, place, caches[name]) for name, place in places.items()}
                table[what] = {name: round(float(one.communicate()[0].split()[-1]), 2) for name, one in running.items()}
        print(f"{what}: {cold[what]}, compiled: {compiled[what]}", flush=True)
    return cold, compiled


def least(tables: Sequence[Table]) -> Table:
    return {what: {name: min(table[what][name] for table in tables) for name in row} for what, row in tables[0].items()}


@contextlib.contextmanager
def checkout_of(commit: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "old"
        subprocess.run(["git", "worktree", "add", "-q", "--detach", str(path), commit], cwd=ROOT, check=True)
        try:
            yield path
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(path)], cwd=ROOT, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", metavar="COMMIT", help="measure this commit beside")
    parser.add_argument("--turns", type=int, default=1, help="the least of so many counts (default 1)")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        places = {"now": ROOT}
        if options.old:
            places["before"] = stack.enter_context(checkout_of(options.old))
        turns = [measured(CODE, places) for _ in range(options.turns)]
    cold, compiled = (least(tables) for tables in zip(*turns, strict=True))
    figures = {"cpu_seconds": cold, "cpu_seconds_compiled": compiled, "load_average": os.getloadavg()[0]}
    print(record("cold_start", figures))


if __name__ == "__main__":
    main()
