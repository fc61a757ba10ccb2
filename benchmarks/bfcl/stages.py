"""One stage or four? Five seeds of each on all 400 test tasks, at equal budgets; the stand-in ``menu``, not a language model.

Written before its runs began. The paper has 36.92 % for four stages and 17.42 % for a single one. This stand-in can show a
difference only if the interval of the paired difference, over seeds and scenarios, leaves zero out; otherwise the pages say that it cannot.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bfcl.ablations import SWITCHES
from benchmarks.bfcl.text_table import aligned
from benchmarks.bfcl.trained import SCORES, Arm, Trained, by_scenario, played, raw, tasks_tested
from envtuning.studies.intervals import FEWEST, Interval, t_mean, t_mean_over_cases
from envtuning.trainees.menu import SIZE, MenuPolicy
from envtuning.worlds.bfcl.package import Version

SEEDS = (5100, 5101, 5102, 5103, 5104)
ARMS = ("four stages", "single stage")
OUT = "runs/bfcl-trained"


def arm(version: Version, name: str, fraction: float = 1.0) -> Arm:
    return Arm(name, version, SWITCHES[name], fraction=fraction)


def run(
    version: Version, out: str = OUT, jobs: int = 1, seeds: int = len(SEEDS), budget: float = 1.0
) -> dict[str, Any]:
    """Each arm's scores, and how far the four stages are above the others, paired by seed and scenario; ``seeds``: only the first so many; ``budget``:
    only this part of the preset's."""
    arms = [arm(version, name, budget) for name in ARMS]
    trained = Trained(Path(out), tuple(arms), SEEDS[:seeds])
    trained.work(jobs)
    tasks = tasks_tested(arms[0])
    scores = {one.name: {score: trained.scores(one, score, tasks) for score in SCORES} for one in arms}
    untrained = played(MenuPolicy(np.zeros(SIZE), draw=True), arms[0].world, tasks)
    first, *others = ARMS
    return {
        "version": version,
        "seeds": list(trained.seeds),
        "part of the budget": budget,
        "tasks": len(tasks),
        "scenarios": len({task.scenario for task in tasks}),
        "arms": {name: {score: figures(rows) for score, rows in of.items()} for name, of in scores.items()},
        "untrained": {score: round(float(np.mean(by_scenario(untrained[score], tasks))), 4) for score in SCORES},
        "four stages minus": {
            other: {score: figures(minus(scores[first][score], scores[other][score])) for score in SCORES}
            for other in others
        },
        "raw": {one.name: raw(trained, one) for one in arms},
    }


def minus(ours: list[list[float]], theirs: list[list[float]]) -> list[list[float]]:
    return (np.array(ours) - np.array(theirs)).tolist()


def figures(rows: list[list[float]]) -> dict[str, Any]:
    """Mean and 95 % interval, and the mean of each seed. Over seeds and scenarios; of too few seeds over scenarios alone."""
    enough = len(rows) >= FEWEST
    interval = t_mean_over_cases(rows) if enough else t_mean(np.mean(rows, axis=0).tolist())
    return {"mean": shown(interval), "by seed": [round(float(np.mean(row)), 4) for row in rows]}


def shown(interval: Interval) -> list[float | None]:
    return [None if value is None else round(value, 4) for value in (interval.mean, interval.low, interval.high)]


def table(figures: dict[str, Any]) -> str:
    """The arms, and below them the paired differences."""
    rows = [[name, *(ranged(of[score]) for score in SCORES)] for name, of in figures["arms"].items()]
    rows.append(["untrained", *(f"{100 * figures['untrained'][score]:.1f}" for score in SCORES)])
    gaps = [
        [f"four stages minus {other}", *(ranged(of[score], signed=True) for score in SCORES)]
        for other, of in figures["four stages minus"].items()
    ]
    fraction = f", {figures['part of the budget']:g} of the budget" if figures["part of the budget"] != 1 else ""
    head = [f"{figures['tasks']} tasks, {len(figures['seeds'])} seeds{fraction}, percent", *SCORES]
    return aligned(head, [*rows, *gaps])


def ranged(of: dict[str, Any], *, signed: bool = False) -> str:
    """Percent with the interval."""
    sign = "+" if signed else ""
    mean, low, high = (100 * value for value in of["mean"])
    return f"{mean:{sign}.1f} ({low:{sign}.1f}, {high:{sign}.1f})"
