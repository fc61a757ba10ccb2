"""Results of policies that do not learn: the baselines for all other figures."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from benchmarks.bfcl.policies import POLICIES, Writer
from benchmarks.bfcl.scripts import run_script
from benchmarks.bfcl.statistics import scenario_interval
from benchmarks.bfcl.text_table import aligned, ranged
from envtuning.worlds.bfcl.episode import Conversation
from envtuning.worlds.bfcl.package import SPLITS, Package, Version, load
from envtuning.worlds.bfcl.rewards import TurnRecord, turn_progress
from envtuning.worlds.bfcl.tasks import load_tasks

SHOWN = ("success", "progress", "syntax")
GENEROUS = "generous_progress"  # what a mean over the turns that were reached would pay


def generous_progress(turns: Sequence[TurnRecord]) -> float:
    """The mean over the turns that were reached; those without ground truth count as solved. Only to show what it pays for doing nothing."""
    if not turns:
        return 0.0
    return sum(turn.check is None or turn_progress(turn) for turn in turns) / len(turns)


def run(version: Version, seed: int = 0) -> dict[str, Any]:
    """Means per split and policy with 95 % intervals over scenarios."""
    package = load(version)
    return {
        "version": version,
        "splits": {
            split: {name: row(package, split, writer, seed) for name, writer in POLICIES.items()} for split in SPLITS
        },
    }


def row(package: Package, split: str, writer: Writer, seed: int) -> dict[str, Any]:
    scores: dict[str, list[float]] = {name: [] for name in (*SHOWN, GENEROUS)}
    scenarios = []
    for task in load_tasks(package, split):
        generator = random.Random(f"{seed} {task.id}")
        talk = run_script(Conversation(package, task, tool_style="none"), writer(package, task, generator))
        reached = talk.scores() | {GENEROUS: generous_progress(talk.records)}
        for name, values in scores.items():
            values.append(reached[name])
        scenarios.append(task.scenario)
    return {name: shown(values, scenarios) for name, values in scores.items()}


def table(figures: dict[str, Any]) -> str:
    """A block for each score: a row for each policy, a column for each split."""
    splits = figures["splits"]
    return "\n\n".join(
        aligned(
            [score, *splits],
            [[name, *(ranged(*rows[name][score]) for rows in splits.values())] for name in POLICIES],
        )
        for score in (*SHOWN, GENEROUS)
    )


def shown(values: Sequence[float], scenarios: Sequence[int]) -> list[float]:
    low, high = scenario_interval(values, scenarios)
    return [round(sum(values) / len(values), 4), round(low, 4), round(high, 4)]
