"""The four stages, and the same without each of their parts: five seeds of each, at equal budgets, on all 400 test tasks.

The trainee is the stand-in ``menu``, not a language model, so this is no result on the benchmark. Written before the runs began (those of four stages
and of a single stage were there already). The paper says: a single stage ends at less than half of the success of four; without actionable messages,
and with a reward for success alone, success falls on the two splits in which something is missing; without the KL term training collapses.
The stand-in shows one of these if the interval of the paired difference, over seeds and scenarios, leaves zero out. Otherwise the pages say
that it cannot tell.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

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
    spec_of,
    tasks_tested,
)
from envtuning.worlds.bfcl.package import SPLITS, Version
from envtuning.worlds.bfcl.scripted import DONE

WHOLE_BUDGET = spec_of("v4", {}).budget
ALL_TASKS = {"tool_style": "none", "slices": {split: {} for split in SPLITS}}

# What `envtuning run benchmarks/bfcl/four_stages.yaml --trust benchmarks --set KEY=VALUE` takes for each.
SWITCHES: dict[str, dict[str, Any]] = {
    "four stages": {},
    "no feedback": {"stages.1.config.feedback": "standard", "stages.2.config.feedback": "standard"},
    "binary reward": {f"stages.{number}.config.reward": "binary" for number in (1, 2, 3)},
    "single stage": {"stages": [{"name": "single", "budget": WHOLE_BUDGET, "config": ALL_TASKS}]},
    "no KL": {"trainee.options.kl": 0.0},
}
PARTS = {"all": SPLITS, "something missing": ("miss_func", "miss_param")}  # of the test


def arm(version: Version, name: str, fraction: float = 1.0) -> Arm:
    return Arm(name, version, SWITCHES[name], fraction=fraction)


def run(
    version: Version, out: str = OUT, jobs: int = 1, seeds: int = len(SEEDS), budget: float = 1.0
) -> dict[str, Any]:
    """The scores of each arm, and the four stages' minus each other arm's, paired by seed and scenario.

    ``seeds``: only the first so many; ``budget``: only this part of the preset's.
    """
    arms = [arm(version, name, budget) for name in SWITCHES]
    trained = Trained(Path(out), tuple(arms), SEEDS[:seeds])
    trained.work(jobs)
    return {
        "version": version,
        "seeds": list(trained.seeds),
        "part of the budget": budget,
        "tests": {part: of_part(trained, splits) for part, splits in PARTS.items()},
        "raw": {one.name: raw(trained, one) for one in arms},
    }


def of_part(trained: Trained, splits: tuple[str, ...]) -> dict[str, Any]:
    """The figures on the test tasks of these splits."""
    usual, *others = trained.arms
    tasks = [task for task in tasks_tested(usual) if task.split in splits]
    scores = {one.name: {score: trained.scores(one, score, tasks) for score in SCORES} for one in trained.arms}
    untaught = {"untrained": MenuPolicy(np.zeros(SIZE), draw=True), "no-op": lambda text: DONE}
    means = {name: played(policy, usual.world, tasks) for name, policy in untaught.items()}
    return {
        "tasks": len(tasks),
        "scenarios": len({task.scenario for task in tasks}),
        "arms": {name: {score: figures(rows) for score, rows in of.items()} for name, of in scores.items()},
        "untaught": {
            name: {score: round(float(np.mean(by_scenario(of[score], tasks))), 4) for score in SCORES}
            for name, of in means.items()
        },
        "four stages minus": {
            one.name: {score: figures(minus(scores[usual.name][score], scores[one.name][score])) for score in SCORES}
            for one in others
        },
    }


def table(figures: dict[str, Any]) -> str:
    """For each part of the test the arms, and the paired differences."""
    return "\n\n".join(part_table(name, of, figures) for name, of in figures["tests"].items())


def part_table(name: str, part: dict[str, Any], whole: dict[str, Any]) -> str:
    rows = [[arm, *(ranged(of[score]) for score in SCORES)] for arm, of in part["arms"].items()]
    rows += [[policy, *(f"{100 * of[score]:.1f}" for score in SCORES)] for policy, of in part["untaught"].items()]
    rows += [
        [f"four stages minus {other}", *(ranged(of[score], signed=True) for score in SCORES)]
        for other, of in part["four stages minus"].items()
    ]
    fraction = f", {whole['part of the budget']:g} of the budget" if whole["part of the budget"] != 1 else ""
    head = [f"{name}: {part['tasks']} tasks, {len(whole['seeds'])} seeds{fraction}, percent", *SCORES]
    return aligned(head, rows)
