"""The speed of drawing boards, for the suite, quotas, resets and a stepping batch: ``python -m benchmarks.generator``."""

from __future__ import annotations

import os
import time
from itertools import product
from typing import Any

import numpy as np

import mapf_frozenlake as mfl
from benchmarks._record import record
from mapf_frozenlake.generator import InstancePool
from mapf_frozenlake.suite import SUITES
from mapf_frozenlake.suite.make import make_suite

AGENTS, SIZES, HOLE_RATIOS = (2, 3, 4, 5), (5, 8, 10), (0.1, 0.3, 0.5)
BOARDS = 300  # with each quota


def quota_row(agents: int, size: int, hole_ratio: float, n: int) -> dict[str, Any]:
    """``generate`` from end to end, half of the boards needing a wait."""
    config = mfl.LakeConfig.single(size, agents, hole_ratio=hole_ratio, wait_ratio=0.5)
    began = time.process_time()
    mfl.generate(config, n, seed=1, num_threads=1)
    rate = round(n / (time.process_time() - began), 1)
    return {
        "agents": agents,
        "size": size,
        "hole_ratio": hole_ratio,
        "instances": n,
        "half_need_a_wait_per_second": rate,
    }


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
    return {
        "agents": agents, "size": size, "hole_ratio": hole_ratio,
        "new_pool_ms": round(creation * 1e3, 3),
        "new_row_us": {name: round(float(np.quantile(fresh, q)) * 1e6, 1) for name, q in (("median", 0.5), ("max", 1))},
        "ready_row_us": round(ready * 1e6, 2),
    }  # fmt: skip


def step_loop(agents: int, size: int, hole_ratio: float, num_envs: int = 1024, steps: int = 400) -> dict[str, Any]:
    """Wall time of a batch's steps, random actions, resets included: while boards are new, then with all of them there."""
    from mapf_frozenlake.world.batch import LakeBatch

    config = mfl.LakeConfig.single(size, agents, hole_ratio=hole_ratio)
    batch = LakeBatch(config, num_envs, observation="compact")
    batch.seed(np.arange(num_envs))
    batch.reset()
    rng = np.random.default_rng(0)
    figures: dict[str, Any] = {"agents": agents, "size": size, "hole_ratio": hole_ratio, "num_envs": num_envs}
    for name in ("boards_new", "boards_there"):
        if name == "boards_there":
            batch.pool.ensure(np.arange(batch.pool.size))
        took = []
        for _ in range(steps):
            actions = rng.integers(0, 5, (num_envs, agents))
            began = time.perf_counter()
            batch.step(actions)
            took.append(time.perf_counter() - began)
        figures[name] = {"median_us": round(float(np.median(took)) * 1e6, 1)}
    return figures


def main() -> None:
    quota_row(2, 4, 0.2, 2)  # compile
    figures: dict[str, Any] = {"suites": suites()}
    figures["load_average_before"] = os.getloadavg()[0]  # wall times say little where others work too
    figures["quotas"] = [quota_row(*kind, BOARDS) for kind in product(AGENTS, SIZES, HOLE_RATIOS)]
    step_loop(2, 4, 0.1, steps=5)  # compile, on a pool that no case uses
    figures["resets"] = [resets(3, 8, 0.3), resets(5, 5, 0.3)]
    figures["step_loop"] = [step_loop(4, 8, 0.3)]
    print(figures)
    print(f"written to {record('generator', figures)}")


if __name__ == "__main__":
    main()
