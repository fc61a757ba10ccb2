"""A picture of a tree: every node by stage and success, and the engineers' paths."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from benchmarks._figure import COLOURS, picture
from envtuning.atlas.rows import Row
from envtuning.atlas.store import Tree

SHOWN = 8  # engineers, spread from the best to the worst


def draw(trees: Sequence[Tree], rows: Sequence[Row], path: Path) -> None:
    """Grey: all stages, means over seeds. Colours: the mean success of where an engineer stood after each stage."""
    spec = trees[0].spec
    with picture(path, figsize=(8.5, 5)) as (_, axes):
        means = {node: 100 * fmean(tree.tested[node] for tree in trees) for node in trees[0].tested}
        for node, value in means.items():
            if node:
                axes.plot(
                    [len(node) - 1, len(node)], [means[node[:-1]], value], color="#b0b0b0", linewidth=0.5, zorder=1
                )
        with_score = [row for row in reversed(rows) if row.paths and row.counts]
        walked = list({str(row.paths): row for row in with_score}.values())  # one of those on one path
        ends: list[tuple[float, str, str]] = []  # success, label, colour; the best first
        for row, colour in zip(spread(walked, SHOWN), COLOURS, strict=False):
            ways = [[tree.tested[row.paths[tree.seed][:stage]] for tree in trees] for stage in range(spec.depth + 1)]
            values = [100 * fmean(stage) for stage in ways]
            axes.plot(range(spec.depth + 1), values, "o-", color=colour, linewidth=2.2, markersize=4, zorder=3)
            ends.append((values[-1], f"{row.name} {values[-1]:.1f}", colour))
        low, high = axes.get_ylim()
        heights = kept_apart([height for height, _, _ in ends], (high - low) / 30)
        for height, (value, words, colour) in zip(heights, ends, strict=True):
            axes.plot([spec.depth, spec.depth + 0.05], [value, height], color=colour, linewidth=0.8)
            axes.annotate(
                words, (spec.depth + 0.05, height), (3, 0), textcoords="offset points", fontsize=8, color=colour, va="center"
            )  # fmt: skip
        axes.set_xticks(range(spec.depth + 1), ["root", *(f"stage {number}" for number in range(1, spec.depth + 1))])
        axes.set_xlim(-0.1, spec.depth + 0.9)
        axes.set_ylabel("valid plans on the test, %")
        axes.set_title(f"{spec.name}: {len(means)} stages a seed, means over {len(trees)} seeds", fontsize=10)


def spread(rows: Sequence[Row], count: int) -> list[Row]:
    """At most so many, from the best to the worst."""
    ordered = sorted(rows, key=lambda row: -row.success.mean)
    if len(ordered) <= count:
        return ordered
    return [ordered[round(place * (len(ordered) - 1) / (count - 1))] for place in range(count)]


def kept_apart(heights: Sequence[float], gap: float) -> list[float]:
    """Heights of labels in the same order from the top, each at least ``gap`` below the one before."""
    placed: list[float] = []
    for height in heights:  # the highest first
        placed.append(height if not placed else min(height, placed[-1] - gap))
    return placed
