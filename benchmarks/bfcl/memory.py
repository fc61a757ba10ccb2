"""Whether memory is released: the growth of the process over many episodes."""

from __future__ import annotations

import gc
import random
import resource
import sys
from typing import Any

from benchmarks.bfcl.policies import Writer, random_calls
from benchmarks.bfcl.scripts import ground_truth, perturbed, run_script
from envtuning.worlds.bfcl.episode import Conversation
from envtuning.worlds.bfcl.package import SPLITS, Package, Version, load
from envtuning.worlds.bfcl.tasks import load_tasks

SETTLED_AFTER = 1_000  # episodes: until then modules, documents and tasks are read for the first time
WRITERS: tuple[Writer, ...] = (ground_truth, perturbed, random_calls)


def run(version: Version, episodes: int = 10_000, settled_after: int = SETTLED_AFTER) -> dict[str, Any]:
    """Play right, broken and random plans in turn; the highest resident size before and after, in KiB."""
    package = load(version)
    _play(package, settled_after)
    before = highest_kib()
    _play(package, episodes)
    return {
        "version": version,
        "episodes": episodes,
        "settled_after": settled_after,
        "highest_kib_before": before,
        "grown_by_kib": highest_kib() - before,
    }


def _play(package: Package, episodes: int) -> None:
    tasks = [task for split in SPLITS for task in load_tasks(package, split)]
    for number, task in enumerate(random.Random(episodes).choices(tasks, k=episodes)):
        script = WRITERS[number % len(WRITERS)](package, task, random.Random(number))
        run_script(Conversation(package, task, tool_style="none"), script)


def highest_kib() -> int:
    """The process's highest resident size so far."""
    gc.collect()
    highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return highest // 1024 if sys.platform == "darwin" else highest
