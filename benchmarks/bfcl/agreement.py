"""Compares verdicts with the official checker's, trajectory by trajectory."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from benchmarks.bfcl.official import official_verdict
from benchmarks.bfcl.scripts import perturbed, run_script
from envtuning.worlds.bfcl.episode import Conversation
from envtuning.worlds.bfcl.package import SPLITS, Version, load
from envtuning.worlds.bfcl.tasks import load_tasks


def run(version: Version, n: int = 2_000, seed: int = 0) -> dict[str, Any]:
    """Play n trajectories, most of them ground truth with mistakes, and have each judged by both."""
    package = load(version)
    tasks = [task for split in SPLITS for task in load_tasks(package, split)]
    generator = random.Random(seed)
    verdicts: Counter[str] = Counter()
    disagreements, departed = [], 0
    for _ in range(n):
        task = generator.choice(tasks)
        talk = run_script(Conversation(package, task, tool_style="none"), perturbed(package, task, generator))
        ours = bool(talk.scores()["success"])
        official = official_verdict(package, task, talk.trajectory)
        verdicts["solved" if official["valid"] else official["error_type"]] += 1
        if talk.departures:
            departed += 1
        elif ours != official["valid"]:
            disagreements.append({"task": task.id, "ours": ours, "trajectory": talk.trajectory})
    return {
        "version": version,
        "trajectories": n,
        "departed": departed,
        "disagreements": disagreements,
        "official_verdicts": dict(verdicts.most_common()),
    }
