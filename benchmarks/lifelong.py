"""How fast lifelong path finding steps beside POGEMA in the same run, and the default lake beside an older commit's.

    python -m benchmarks.lifelong --pogema-python PATH --old COMMIT

64 agents on 32×32, 11×11 windows, POGEMA's rule "priority", new goals, uniformly random actions, 64 steps an episode, resets
included, in CPU time of one core. Ours by ``gym.make_vec``. Both sides take turns, and the best of each counts.

The default lake is also compiled in both commits, at the same time and with an empty cache each time. Of the CPU seconds, the median over
the turns counts: other work on the machine may slow one side of a turn more than the other.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

from benchmarks._record import raise_unless_committed, record
from benchmarks.cold_start import CODE, ROOT, checkout_of, measured
from benchmarks.throughput import HOLES, HORIZON, pogema, vector_env
from mapf_frozenlake import LakeConfig

AGENTS, SIZE, RADIUS, ENVS = 64, 32, 5, 64
LEAST = 40  # times POGEMA
LEAST_OF_BEFORE = 0.98  # of the older commit's speed
MOST_TO_COMPILE = 1.10  # times the older commit's CPU seconds
DEFAULT_LAKE = {  # what is measured in both commits: agent-steps or env-steps per CPU second
    "4 agents, 8×8, 11×11": "stepper(lake(8, 4), 1024, window=11)",
    "4 agents, 8×8, compact": "stepper(lake(8, 4), 1024, observation='compact')",
    "one env by gym.make": "single_env()",
}


def beside_pogema(python: str, rounds: int) -> dict[str, Any]:
    config = LakeConfig.single(SIZE, AGENTS, hole_ratio=HOLES, on_goal="next", collisions="priority", horizon=HORIZON)
    settings = {"agents": AGENTS, "size": SIZE, "radius": RADIUS, "holes": HOLES, "horizon": HORIZON, "steps": 300}
    peer = pogema(python, settings | {"on_target": "restart"})
    if peer is None:
        raise SystemExit(f"{python} does not run POGEMA: pip install pogema==1.4.0 there")
    window = 2 * RADIUS + 1
    runs = {
        "ego": vector_env(ENVS, config, random=True, window=window),
        "pogema": vector_env(ENVS, config, random=True, window=window, observation="pogema"),
        "POGEMA": peer,
    }
    speeds = {name: max(each) for name, each in in_turns(runs, rounds).items()}
    ratios = {name: round(speeds[name] / speeds["POGEMA"], 1) for name in ("ego", "pogema")}
    return {"agent_steps_per_cpu_second": speeds, "times_pogema": ratios, "least": LEAST}


def in_turns(runs: dict[str, Any], rounds: int) -> dict[str, list[float]]:
    speeds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            speeds[name].append(run())
    return speeds


def beside_older(old: Path, rounds: int) -> dict[str, Any]:
    """The default lake's speed now over its speed in the older commit; each measurement is a process of its own."""
    runs = {
        (what, place == old): lambda place=place, code=code: speed_in(place, code)
        for what, code in DEFAULT_LAKE.items()
        for place in (ROOT, old)
    }
    speeds = {key: max(each) for key, each in in_turns(runs, rounds).items()}
    ratios = {what: round(speeds[what, False] / speeds[what, True], 3) for what in DEFAULT_LAKE}
    return {"now_over_then": ratios, "least": LEAST_OF_BEFORE}


def compiled_beside_older(old: Path, turns: int) -> dict[str, Any]:
    """CPU seconds without compiled code, now and in the older commit, and the ratio of their medians."""
    tables = [measured(CODE, {"now": ROOT, "then": old})[0] for _ in range(turns)]
    seconds = {what: {when: [table[what][when] for table in tables] for when in ("now", "then")} for what in CODE}
    ratios = {what: round(median(both["now"]) / median(both["then"]), 3) for what, both in seconds.items()}
    return {"cpu_seconds": seconds, "now_over_then": ratios, "most": MOST_TO_COMPILE}


def speed_in(place: Path, code: str) -> float:
    program = f"from benchmarks.throughput import *\nrun = {code}\nprint(max(run() for _ in range(12)))"
    environment = os.environ | {"PYTHONPATH": str(place), "MAPF_FROZENLAKE_QUIET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=place, env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pogema-python", metavar="PATH", required=True, help="an interpreter that has pogema")
    parser.add_argument("--old", metavar="COMMIT", required=True, help="the default lake's older commit")
    parser.add_argument("--rounds", type=int, default=8, metavar="N", help="turns of the speeds (default 8)")
    parser.add_argument("--turns", type=int, default=5, metavar="N", help="turns of the compilations (default 5)")
    args = parser.parse_args()
    raise_unless_committed()
    with checkout_of(args.old) as old:
        figures = {
            "lifelong": beside_pogema(args.pogema_python, args.rounds),
            "older_commit": args.old,
            "default_lake": beside_older(old, args.rounds),
            "cold_compile": compiled_beside_older(old, args.turns),
        }
    print(figures)
    sys.argv = [Path(word).name if word == args.pogema_python else word for word in sys.argv]
    print(record("lifelong", figures | {"load_average": os.getloadavg()[0]}))


if __name__ == "__main__":
    main()
