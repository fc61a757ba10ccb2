"""CPU seconds without compiled code: to the first step of an environment, and to the first boards and plan.

    python -m benchmarks.cold_start [--atlas] [--wheel | --old COMMIT] [--turns 1]

With ``--atlas``, it measures an engineer's score on every stored tree instead. Each is measured in its own process with an empty cache,
and then in another one that finds the first one's compiled code. With ``--wheel``, the code is the wheel of this commit, installed with the
extra ``atlas`` in a fresh environment outside of the checkout. With ``--old``, that commit's code is measured at the same time as this one's,
so that other work on the machine slows both.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
ATLAS = {
    "an engineer that chooses from menus": """
from engineers import Proposal
from envtuning import atlas
class First:
    name = "first"
    def propose(self, report, current, editable=None):
        return Proposal(config=type(current)(choice="A"), engineer=self.name)
atlas.score(First())
""",
    "an engineer that writes configs": """
from envtuning import atlas
atlas.score("rules")
""",
}
SAY = "\nimport time\nprint(time.process_time())\n"


@dataclass(frozen=True)
class Place:
    """An interpreter, and the folder that it runs in and imports from first."""

    folder: Path
    python: str = sys.executable


def started(code: str, place: Place, cache: str) -> subprocess.Popen[str]:
    environment = os.environ | {"NUMBA_CACHE_DIR": cache, "PYTHONPATH": str(place.folder), "OMP_NUM_THREADS": "1"}
    command = [place.python, "-c", code + SAY]
    return subprocess.Popen(command, cwd=place.folder, env=environment, stdout=subprocess.PIPE, text=True)


Table = dict[str, dict[str, float]]  # by what is waited for and by place


def measured(codes: dict[str, str], places: dict[str, Place]) -> tuple[Table, Table]:
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
def installed() -> Iterator[Place]:
    with tempfile.TemporaryDirectory() as folder:
        python, empty = Path(folder) / "venv" / "bin" / "python", Path(folder) / "empty"
        venv.create(python.parents[1], with_pip=True)
        empty.mkdir()
        pip = [str(python), "-m", "pip", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, "wheel", "--no-deps", "-w", folder, str(ROOT)], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        subprocess.run([*pip, "install", "-c", str(ROOT / "constraints.txt"), f"{wheel}[atlas]"], check=True)
        yield Place(empty, str(python))


@contextlib.contextmanager
def checkout_of(commit: str) -> Iterator[Place]:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "old"
        subprocess.run(["git", "worktree", "add", "-q", "--detach", str(path), commit], cwd=ROOT, check=True)
        try:
            yield Place(path)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(path)], cwd=ROOT, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--old", metavar="COMMIT", help="measure this commit beside")
    where.add_argument("--wheel", action="store_true", help="measure the wheel in a fresh environment")
    parser.add_argument("--atlas", action="store_true", help="an engineer's score on every stored tree instead")
    parser.add_argument("--turns", type=int, default=1, help="the least of so many counts (default 1)")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        places = {"now": stack.enter_context(installed()) if options.wheel else Place(ROOT)}
        if options.old:
            places["before"] = stack.enter_context(checkout_of(options.old))
        turns = [measured(ATLAS if options.atlas else CODE, places) for _ in range(options.turns)]
    cold, compiled = (least(tables) for tables in zip(*turns, strict=True))
    figures = {"cpu_seconds": cold, "cpu_seconds_compiled": compiled, "load_average": os.getloadavg()[0]}
    print(record("cold_start_atlas" if options.atlas else "cold_start", figures))


if __name__ == "__main__":
    main()
