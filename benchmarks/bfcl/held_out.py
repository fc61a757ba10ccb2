"""A tool class that is never trained on, for each of the eight: what a policy of the stand-in ``menu`` does with it afterwards.

Written before its runs began. Three seeds a class, the preset's four stages and budgets; tested on all tasks that use the class. Beside them the
untrained policy on the same tasks, and, on those of them that are in the usual test, the policy that was trained with the class, paired by seed
and scenario: its training has other tasks too, and no more of them. The paper's own test of this kind is other benchmarks, which were not run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bfcl.ablations import arm
from benchmarks.bfcl.menu_trainee import SIZE, MenuPolicy
from benchmarks.bfcl.text_table import aligned
from benchmarks.bfcl.trained import (
    OUT,
    SCORES,
    SEEDS,
    Arm,
    Trained,
    by_scenario,
    figures,
    minus,
    played,
    ranged,
    raw,
    tasks_tested,
)
from envtuning.worlds.bfcl.package import TOOL_CLASSES, ToolClass, Version

FEWER_SEEDS = SEEDS[:3]


def without(version: Version, held_out: ToolClass, fraction: float = 1.0) -> Arm:
    return Arm(f"without {held_out}", version, held_out=held_out, fraction=fraction)


def run(
    version: Version, out: str = OUT, jobs: int = 1, seeds: int = len(FEWER_SEEDS), budget: float = 1.0
) -> dict[str, Any]:
    """``seeds``: only the first so many, where there is no time for all; the intervals are then over scenarios alone. ``budget``: only
    this part of the preset's."""
    usual = arm(version, "four stages", budget)
    arms = [without(version, held_out, budget) for held_out in TOOL_CLASSES]
    trained = Trained(Path(out), (usual, *arms), FEWER_SEEDS[:seeds])
    trained.work(jobs)
    return {
        "version": version,
        "seeds": list(trained.seeds),
        "part of the budget": budget,
        "classes": {one.held_out: of_class(trained, one, usual) for one in arms},
        "raw": {one.name: raw(trained, one) for one in arms},
    }


def of_class(trained: Trained, never: Arm, usual: Arm) -> dict[str, Any]:
    """One class's figures: the policies that never saw it, the untrained one, and those that did."""
    tasks = tasks_tested(never)
    usually_tested = {task.id for task in tasks_tested(usual)}
    both = [task for task in tasks if task.id in usually_tested]
    untrained = played(MenuPolicy(np.zeros(SIZE), draw=True), never.world, tasks)
    found: dict[str, Any] = {
        "training scenarios": len(never.world.cut.train),
        "tasks": len(tasks),
        "scenarios": len({task.scenario for task in tasks}),
        "scenarios in the usual test": len({task.scenario for task in both}),
        "never seen": {},
        "untrained": {},
        "never seen, usual test": {},
        "seen, usual test": {},
        "never seen minus seen": {},
    }
    for score in SCORES:
        one, other = trained.scores(never, score, both), trained.scores(usual, score, both)
        found["never seen"][score] = figures(trained.scores(never, score, tasks))
        found["untrained"][score] = round(float(np.mean(by_scenario(untrained[score], tasks))), 4)
        found["never seen, usual test"][score] = figures(one)
        found["seen, usual test"][score] = figures(other)
        found["never seen minus seen"][score] = figures(minus(one, other))
    return found


def table(figures: dict[str, Any]) -> str:
    """A block for each score, a row for each class."""
    columns = ["never seen", "untrained", "never seen, usual test", "seen, usual test", "never seen minus seen"]
    blocks = []
    for score in SCORES:
        rows = []
        for name, of in figures["classes"].items():
            cells = [
                f"{100 * of[column][score]:.1f}"
                if column == "untrained"
                else ranged(of[column][score], signed="minus" in column)
                for column in columns
            ]
            rows.append([f"{name}, {of['tasks']} tasks", *cells])
        blocks.append(aligned([f"{score}, percent", *columns], rows))
    return "\n\n".join(blocks)
