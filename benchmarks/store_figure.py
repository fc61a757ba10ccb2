"""A picture of a study: each arm's success over the budget, and every seed's result on the test."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks._figure import COLOURS, picture
from envtuning.runs.log import RunLog
from envtuning.studies.compare import Comparison
from envtuning.worlds.episodes import pooled


def draw(comparison: Comparison, runs: dict[tuple[str, int], RunLog], path: Path) -> None:
    """Left: validation after every stage, mean and range over seeds. Right: each seed's test, mean and interval."""
    metric, word = next(iter(comparison.headings.items()))
    rows = sorted(comparison.rows, key=lambda row: row.success.mean)
    with picture(path, 2, figsize=(9.5, 3.8), width_ratios=(1.15, 1)) as (figure, (climb, end)):
        for row, colour in zip(rows, COLOURS, strict=False):
            spent, curves = curves_of([run for (arm, _), run in runs.items() if arm == row.arm], metric)
            climb.plot(spent, 100 * curves.mean(axis=0), color=colour, label=row.arm, linewidth=2)
            climb.fill_between(
                spent, 100 * curves.min(axis=0), 100 * curves.max(axis=0), color=colour, alpha=0.12, linewidth=0
            )
        climb.set_xlabel(f"{comparison.unit.replace('_', ' ')} spent, thousands")
        climb.set_ylabel(f"{word} on validation, %")
        climb.legend(frameon=False, fontsize=8)
        for place, (row, colour) in enumerate(zip(rows, COLOURS, strict=False)):
            values = [100 * one.success for one in comparison.runs if one.arm == row.arm]
            end.plot(values, [place] * len(values), "o", color=colour, alpha=0.5, markersize=5, markeredgewidth=0)
            low, high = row.success.low, row.success.high
            if low is not None and high is not None:
                end.plot([100 * low, 100 * high], [place, place], color=colour, linewidth=2)
            end.plot(100 * row.success.mean, place, "|", color=colour, markersize=16, markeredgewidth=2.5)
        end.set_yticks(range(len(rows)), [f"{row.arm} (n={row.seeds})" for row in rows])
        end.set_xlabel(f"{word} on the test, %")
        figure.suptitle(
            f"{comparison.study}: {comparison.budget:,} {comparison.unit.replace('_', ' ')} a run", fontsize=10
        )


def curves_of(runs: Sequence[RunLog], metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Thousands spent after each stage, and [seeds, stages] of the closing validations."""
    table = np.array([[pooled(stage.report.results, metric) for stage in run.state.done] for run in runs])
    spent = np.array([[stage.done.spent[run.plan.unit] for stage in run.state.done] for run in runs])
    return spent.cumsum(axis=1).mean(axis=0) / 1000, table
