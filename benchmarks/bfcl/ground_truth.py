"""The ground truth played in the environment: solved tasks, rewards, and speed."""

from __future__ import annotations

import random
import time
from typing import Any

import gymnasium as gym

import envtuning.worlds.bfcl  # noqa: F401  registers the environment
from benchmarks.bfcl.scripts import ground_truth
from envtuning.worlds.bfcl.package import SPLITS, Version, load
from envtuning.worlds.bfcl.scripted import DONE
from envtuning.worlds.bfcl.tasks import load_tasks


def run(version: Version, passes: int = 2) -> dict[str, Any]:
    """Every task of every split through ``gym.make``, each pass in another order; CPU seconds of the fastest pass."""
    package = load(version)
    env = gym.make("BFCLMultiTurn-v0", version=version, tool_style="none")
    tasks = [task for split in SPLITS for task in load_tasks(package, split)]
    generator, solved, paid, best = random.Random(0), 0, 0, float("inf")
    for _ in range(passes):
        generator.shuffle(tasks)
        scripts = [ground_truth(package, task, generator) for task in tasks]
        began = time.process_time()
        for task, script in zip(tasks, scripts):
            env.reset(options={"task": task})
            total, info = 0.0, {}
            for replies in script:
                for reply in [*replies, DONE]:
                    _, reward, _, _, info = env.step(reply)
                    total += float(reward)
            solved += info["success"] and not info["departures"]
            paid += abs(total - 1.0) < 1e-9 and info["progress"] == 1.0
        best = min(best, time.process_time() - began)
    return {
        "version": version,
        "tasks": len(tasks),
        "passes": passes,
        "solved": solved,
        "progress_1": paid,
        "episodes_per_cpu_second": round(len(tasks) / best),
    }
