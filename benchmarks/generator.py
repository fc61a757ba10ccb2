"""``python -m benchmarks.generator``: certified instances per second against w9-pathfinding, the suite's time, resets.

Both sides get the same candidate boards, drawn uniformly and kept when each agent alone can reach its goal. Ours is charged
for drawing them and for certifying each: solvable or not, the least makespan, whether it needs a wait. w9 is charged for
drawing them and for one plan of least sum of costs each (it decides neither of the other two questions): making its Grid,
and the solver's call. ``ratio_to_call_alone`` leaves its Grid out.
Which of its CBS, ICTS and MAA* is the fastest in a row is tried on the first boards; the fastest then gets them all. CPU
time, one core.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import mapf_frozenlake as mfl
from benchmarks._record import record
from mapf_frozenlake.generator import InstancePool, kernel
from mapf_frozenlake.generator.generate import DEFAULT_LIMITS, seed_key
from mapf_frozenlake.generator.strata import hole_count
from mapf_frozenlake.instance_set import InstanceSet
from mapf_frozenlake.solvers.certify import (
    FEASIBLE,
    INFEASIBLE,
    OUT_OF_BUDGET,
    Certificates,
    certify_batch,
    certify_one,
)
from mapf_frozenlake.suite import SUITES
from mapf_frozenlake.suite.make import make_suite

AGENTS, SIZES, HOLE_RATIOS = (2, 3, 4, 5), (5, 8, 10), (0.1, 0.3, 0.5)
OUR_CAP = 10_000_000  # expansions per board
W9_CAP = 0.25  # seconds per board; a board beyond it is charged, but not counted as an instance
W9_TRIAL_BOARDS, W9_TRIAL_CAP = 60, 0.1  # to choose its solver
QUANTILES = {"median": 0.5, "p99": 0.99, "p999": 0.999, "max": 1.0}
_NO_PAIRS = np.empty((0, 3), np.int64)


def candidates(agents: int, size: int, hole_ratio: float, n: int) -> tuple[InstanceSet, int, float]:
    """n boards on which each agent alone can reach its goal, how many were drawn for them, and the CPU seconds of that."""
    room, tally = InstanceSet.empty(n, size, size, agents), np.zeros((n, kernel.NUM_FATES), np.int64)
    began = time.process_time()
    kernel.fill_reachable(
        seed_key(0), np.arange(n), np.arange(n), size, size, agents, hole_count(size, size, agents, hole_ratio), 1, _NO_PAIRS,
        np.empty(0, np.uint64), 1_000_000, room.holes, room.starts, room.goals, tally,
    )  # fmt: skip
    return room, int(tally.sum()), time.process_time() - began


def certify_all(boards: InstanceSet, budget: int = OUR_CAP) -> tuple[Certificates, float, np.ndarray]:
    """The certificates, the CPU seconds of all of them in one call, and of each in a call of its own."""
    arguments = boards.holes, boards.starts, boards.goals
    began = time.process_time()
    certificates = certify_batch(*arguments, budget=budget, num_threads=1)
    together = time.process_time() - began
    each = np.empty(len(boards.holes))
    size, agents = boards.holes.shape[1], boards.starts.shape[1]
    for row, (holes, starts, goals) in enumerate(zip(*arguments, strict=True)):
        began = time.process_time()
        certify_one(holes, size, size, starts, goals, agents, budget)
        each[row] = time.process_time() - began
    return certificates, together, each


def w9_solvers() -> dict[str, Callable[[Any], Any]]:
    from w9_pathfinding.mapf import CBS, ICTS, MultiAgentAStar

    return {"CBS": CBS, "ICTS": ICTS, "MAA*": MultiAgentAStar}


def w9_all(
    solver: Callable[[Any], Any], boards: InstanceSet, cap: float, most_seconds: float = np.inf
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Per board: whether a plan was found, the CPU seconds of making the Grid, those of the solver's call.

    ``cap`` is for one board; after ``most_seconds`` for all of them the rest is left out.
    """
    from w9_pathfinding.envs import Grid

    n = len(boards.holes)
    solved, making, solving = np.zeros(n, bool), np.zeros(n), np.zeros(n)
    for row in range(n):
        if solving.sum() > most_seconds:
            return solved[:row], making[:row], solving[:row]
        weights = np.where(boards.holes[row], -1.0, 1.0).tolist()
        starts = [(col, line) for line, col in boards.starts[row].tolist()]
        goals = [(col, line) for line, col in boards.goals[row].tolist()]
        began = time.process_time()
        engine = solver(Grid(weights, edge_collision=True))
        made = time.process_time()
        try:
            solved[row] = bool(engine.mapf(starts, goals, max_time=cap))
        except RuntimeError:  # its way to say that the time is over
            solved[row] = False
        solving[row] = time.process_time() - made
        making[row] = made - began
    return solved, making, solving


def compare(agents: int, size: int, hole_ratio: float, feasible_wanted: int) -> dict[str, Any]:
    """One row of the table."""
    n = feasible_wanted
    while True:
        boards, _, drawing = candidates(agents, size, hole_ratio, n)
        certificates, ours, ours_each = certify_all(boards)
        status, waits = certificates.status, certificates.needs_wait
        feasible = status == FEASIBLE
        if feasible.sum() >= feasible_wanted:
            break
        n = int(n * feasible_wanted / max(feasible.sum(), 1) * 1.02) + 5
    row = {
        "agents": agents, "size": size, "hole_ratio": hole_ratio, "boards": n, "feasible": int(feasible.sum()),
        "infeasible": int((status == INFEASIBLE).sum()), "beyond_our_cap": int(((status != FEASIBLE) & (status != INFEASIBLE)).sum()),
        "needs_wait": round(float((waits[feasible] == 1).mean()), 4),
        "drawing_us_per_board": round(drawing / n * 1e6, 2),
        "ours_per_second": round(float(feasible.sum() / (drawing + ours)), 1),
        "ours_mean_us": round(float(ours_each.mean() * 1e6), 2), "ours_median_us": round(float(np.median(ours_each) * 1e6), 2),
    }  # fmt: skip
    name, solver = fastest_w9(boards)
    solved, making, solving = w9_all(solver, boards, W9_CAP)
    theirs = making + solving
    assert not (solved & (status == INFEASIBLE)).any(), f"{name} solved a board that was certified infeasible"
    row |= {
        "w9_solver": name, "w9_per_second": round(float(solved.sum() / (drawing + theirs.sum())), 1),
        "w9_mean_us": round(float(theirs.mean() * 1e6), 2), "w9_median_us": round(float(np.median(theirs) * 1e6), 2),
        "w9_beyond_cap": int((feasible & ~solved).sum()),
    }  # fmt: skip
    call_alone = float(solved.sum() / (drawing + solving.sum()))
    row["ratio"] = round(row["ours_per_second"] / max(row["w9_per_second"], 1e-9), 2)
    row["ratio_to_call_alone"] = round(row["ours_per_second"] / max(call_alone, 1e-9), 2)
    return row


def fastest_w9(boards: InstanceSet) -> tuple[str, Callable[[Any], Any]]:
    """The solver that got through the first boards in the least CPU time."""
    first = boards[:W9_TRIAL_BOARDS]
    seconds = {name: w9_all(solver, first, W9_TRIAL_CAP)[2].sum() for name, solver in w9_solvers().items()}
    name = min(seconds, key=lambda name: seconds[name])
    return name, w9_solvers()[name]


def quota_row(agents: int, size: int, hole_ratio: float, n: int) -> dict[str, Any]:
    """``generate`` from end to end: labels as they fall, and a quota of one half."""
    row: dict[str, Any] = {"agents": agents, "size": size, "hole_ratio": hole_ratio, "instances": n}
    for name, wait_ratio in (("as_it_falls", None), ("half_need_a_wait", 0.5)):
        config = mfl.LakeConfig.single(size, agents, hole_ratio=hole_ratio, wait_ratio=wait_ratio)
        began = time.process_time()
        mfl.generate(config, n, seed=1, num_threads=1)
        row[f"{name}_per_second"] = round(n / (time.process_time() - began), 1)
    return row


def tail_row(agents: int, size: int, hole_ratio: float, n: int) -> dict[str, Any]:
    """How long the hardest boards take under the generator's own limit, and how many it gives up and draws anew."""
    boards, _, _ = candidates(agents, size, hole_ratio, n)
    certify_all(boards[:1], DEFAULT_LIMITS.expansions)
    certificates, _, each = certify_all(boards, DEFAULT_LIMITS.expansions)
    return {
        "agents": agents, "size": size, "hole_ratio": hole_ratio, "boards": n,
        "undecided": int((certificates.status == OUT_OF_BUDGET).sum()),
        "ms": {name: round(float(np.quantile(each, q)) * 1e3, 3) for name, q in QUANTILES.items()},
    }  # fmt: skip


def suites() -> list[dict[str, Any]]:
    """Each shipped suite made anew, on all cores."""
    rows = []
    for name, published in SUITES.items():
        wall, cpu = time.perf_counter(), time.process_time()
        suite = make_suite(name)
        rows.append(
            {
                "suite": name,
                "instances": len(suite),
                "wall_seconds": round(time.perf_counter() - wall, 2),
                "cpu_seconds": round(time.process_time() - cpu, 2),
                "as_published": suite.checksum == published,
            }
        )
    return rows


def resets(agents: int, size: int, hole_ratio: float) -> dict[str, Any]:
    """CPU time of a reset's board, new or already there, and of the pool that a new config needs."""
    config = mfl.LakeConfig.single(size, agents, hole_ratio=hole_ratio)
    began = time.thread_time()
    pool = InstancePool(config, seed=3)
    creation = time.thread_time() - began
    fresh = []
    for row in range(1000):
        began = time.thread_time()
        pool.ensure(np.array([row]))
        fresh.append(time.thread_time() - began)
    began = time.thread_time()
    for row in range(1000):
        pool.ensure(np.array([row]))
    ready = (time.thread_time() - began) / 1000
    many = np.arange(1000)
    began = time.thread_time()
    for _ in range(100):
        pool.ensure(many)
    return {
        "agents": agents, "size": size, "hole_ratio": hole_ratio,
        "new_pool_ms": round(creation * 1e3, 3),
        "new_row_us": {name: round(float(np.quantile(fresh, q)) * 1e6, 1) for name, q in (("median", 0.5), ("p99", 0.99), ("max", 1))},
        "ready_row_us": round(ready * 1e6, 2),
        "thousand_ready_rows_us": round((time.thread_time() - began) / 100 * 1e6, 2),
    }  # fmt: skip


def step_loop(agents: int, size: int, hole_ratio: float, num_envs: int = 1024, steps: int = 400) -> dict[str, Any]:
    """Wall time of a batch's steps, random actions, resets included: while boards are new, then with all of them there."""
    from mapf_frozenlake.world.batch import LakeBatch

    config = mfl.LakeConfig.single(size, agents, hole_ratio=hole_ratio)
    batch = LakeBatch(config, num_envs, observation="compact")
    batch.seed(np.arange(num_envs))
    began = time.perf_counter()
    batch.reset()
    first_reset = time.perf_counter() - began
    rng = np.random.default_rng(0)
    figures: dict[str, Any] = {"agents": agents, "size": size, "hole_ratio": hole_ratio, "num_envs": num_envs}
    figures["first_reset_ms"] = round(first_reset * 1e3, 2)
    for name in ("boards_new", "boards_there"):
        if name == "boards_there":
            batch.pool.ensure(np.arange(batch.pool.size))
        took = []
        for _ in range(steps):
            actions = rng.integers(0, 5, (num_envs, agents))
            began = time.perf_counter()
            batch.step(actions)
            took.append(time.perf_counter() - began)
        figures[name] = {
            "mean_us": round(float(np.mean(took)) * 1e6, 1), "median_us": round(float(np.median(took)) * 1e6, 1),
            "p99_us": round(float(np.quantile(took, 0.99)) * 1e6, 1), "max_us": round(max(took) * 1e6, 1),
        }  # fmt: skip
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.generator", description=__doc__)
    parser.add_argument("--boards", type=int, default=300, help="solvable boards per row (300)")
    parser.add_argument("--agents", type=int, nargs="*", default=list(AGENTS))
    arguments = parser.parse_args()
    compare(2, 4, 0.2, 5)  # compile
    quota_row(2, 4, 0.2, 2)
    figures: dict[str, Any] = {"suites": suites(), "our_cap_expansions": OUR_CAP, "w9_cap_seconds": W9_CAP}
    figures["load_average_before"] = os.getloadavg()[0]  # wall times say little where others work too
    figures["w9_chosen_on"] = {"boards": W9_TRIAL_BOARDS, "cap_seconds": W9_TRIAL_CAP}
    figures |= {"against_w9": [], "quotas": [], "tails": [], "limit_expansions": DEFAULT_LIMITS.expansions}
    for agents in arguments.agents:
        for size in SIZES:
            for hole_ratio in HOLE_RATIOS:
                row = compare(agents, size, hole_ratio, arguments.boards)
                figures["against_w9"].append(row)
                figures["quotas"].append(quota_row(agents, size, hole_ratio, arguments.boards))
                figures["tails"].append(tail_row(agents, size, hole_ratio, 2000))
                print({**row, **figures["quotas"][-1], **figures["tails"][-1]}, flush=True)
    cases = [(2, 4, 0.2), (3, 8, 0.3), (4, 8, 0.3), (5, 5, 0.3), (5, 10, 0.3)]
    step_loop(2, 4, 0.1, steps=5)  # compile, on a pool that no case uses
    figures["resets"] = [resets(*case) for case in cases]
    figures["step_loop"] = [step_loop(*case) for case in cases]
    print(figures["resets"], figures["step_loop"])
    print(f"written to {record('generator', figures)}")


if __name__ == "__main__":
    main()
