"""Scores of walks: success on the test at the leaf, beside the best path and the rows that need no engineer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from envtuning.atlas.spec import Path_
from envtuning.atlas.store import Tree
from envtuning.atlas.walk import Player, Walk, walk
from envtuning.studies.intervals import Interval, t_mean

RELIABLE = 0.8  # from which on the order of paths is that of the paths, and not that of the seeds


@dataclass(frozen=True)
class Nearness:
    """How near free answers were to what was trained in their place."""

    distances: list[float]
    spacings: list[float]

    @property
    def median(self) -> float:
        return median(self.distances)

    @property
    def bound(self) -> float:
        """Half of the entries' spacing: beyond it an answer is hardly nearer to its entry than to another."""
        return median(self.spacings) / 2

    @property
    def holds(self) -> bool:
        return self.median <= self.bound


@dataclass(frozen=True)
class Row:
    """One way of choosing, over the seeds."""

    name: str
    values: dict[int, float]  # success on the test, by seed
    paths: dict[int, Path_]
    nearness: Nearness | None = None  # of free answers
    fallbacks: int = 0
    tokens: int = 0
    cost: float | None = 0.0
    fault: str = ""  # why the first unusable answer was none

    @property
    def counts(self) -> bool:
        """Whether there is a score: not where free answers were too far from what stood for them."""
        return self.nearness is None or self.nearness.holds

    @property
    def success(self) -> Interval:
        return t_mean(list(self.values.values()))


def references(trees: Sequence[Tree]) -> list[Row]:
    """Best path, chosen on the other seeds; the oracle of one step; the target at every step; the mean of all paths."""
    target = trees[0].spec.target_entry
    alone = [] if target is None else [same_entry("target only", trees, target)]
    rows = [greedy(trees), *alone, mean_path(trees)]
    return [best_path(trees), *rows] if len(trees) > 1 else rows


def leaves(tree: Tree) -> list[Path_]:
    return list(tree.spec.paths(tree.spec.depth))


def best_path(trees: Sequence[Tree]) -> Row:
    """For each seed the leaf that is best in the mean of the other seeds: what knowing the tree, but not the seed, is worth."""
    found: dict[int, Path_] = {}
    for tree in trees:
        others = [other for other in trees if other is not tree]
        found[tree.seed] = max(leaves(tree), key=lambda path: fmean(other.tested[path] for other in others))
    return _row("best path", trees, found)


def greedy(trees: Sequence[Tree]) -> Row:
    """Sees what every child would validate at, and takes the best, step by step."""
    found = {}
    for tree in trees:
        path: Path_ = ()
        while len(path) < tree.spec.depth:
            path = max(((*path, name) for name in tree.spec.menu), key=tree.validated)
        found[tree.seed] = path
    return _row("one-step oracle", trees, found)


def same_entry(name: str, trees: Sequence[Tree], entry: str) -> Row:
    return _row(name, trees, {tree.seed: (entry,) * tree.spec.depth for tree in trees})


def mean_path(trees: Sequence[Tree]) -> Row:
    """What choosing at random is worth."""
    return Row("mean path", {tree.seed: fmean(tree.tested[path] for path in leaves(tree)) for tree in trees}, {})


def _row(name: str, trees: Sequence[Tree], paths: Mapping[int, Path_]) -> Row:
    return Row(name, {tree.seed: tree.tested[paths[tree.seed]] for tree in trees}, dict(paths))


def row_of(name: str, trees: Sequence[Tree], player: Player, walked: Callable[[Walk], None] = lambda walk: None) -> Row:
    """An engineer's walk through every seed's tree. ``walked`` hears of each."""
    walks = []
    for tree in trees:
        walks.append(walk(tree, player))
        walked(walks[-1])
    steps = [step for one in walks for step in one.steps]
    near = None
    if steps[0].distance is not None:
        near = Nearness([step.distance or 0.0 for step in steps], [step.spacing or 0.0 for step in steps])
    costs = [step.usage.cost for step in steps]
    return Row(
        name=name,
        values={tree.seed: tree.tested[one.path] for tree, one in zip(trees, walks, strict=True)},
        paths={one.seed: one.path for one in walks},
        nearness=near,
        fallbacks=sum(step.fallback for step in steps),
        tokens=sum(step.usage.tokens for step in steps),
        cost=None if None in costs else sum(cost or 0.0 for cost in costs),
        fault=next(("; ".join(step.refusals) or "it gave no config" for step in steps if step.fallback), ""),
    )


def taken(row: Row, rows: Sequence[Row]) -> float | None:
    """The part of the way from the mean path to the best path that a row gets; None where that way is no way up."""
    means = {one.name: one.success.mean for one in rows}
    if "best path" not in means or means["best path"] <= means["mean path"]:
        return None
    return (row.success.mean - means["mean path"]) / (means["best path"] - means["mean path"])


@dataclass(frozen=True)
class Reliability:
    """The part of the differences between paths that is due to the paths (Cronbach's alpha, seeds as raters)."""

    seeds: int
    of_the_mean: float  # over all seeds: what the tables stand on
    of_one_seed: float
    upper_half: float  # of the mean, among the better half of the paths: without those that anybody would avoid
    between_paths: float  # standard deviation of the paths' means
    within: float  # standard deviation of a path's seeds around its mean, the seeds' own levels taken out

    @property
    def ships(self) -> bool:
        return self.of_the_mean >= RELIABLE

    @property
    def seeds_needed(self) -> int | None:
        """Seeds from which on the mean would be reliable (Spearman and Brown); None where none would do."""
        r = self.of_one_seed
        return None if r <= 0 else int(np.ceil(round(RELIABLE * (1 - r) / (r * (1 - RELIABLE)), 9)))


def reliability(trees: Sequence[Tree]) -> Reliability:
    """Of success on the test at the leaves; needs two seeds."""
    table = np.array([[tree.tested[path] for tree in trees] for path in leaves(trees[0])])
    better = table[np.argsort(table.mean(axis=1))[len(table) // 2 :]]
    one = _one_rater(table)
    left = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
    freedom = (table.shape[0] - 1) * (table.shape[1] - 1)
    return Reliability(
        seeds=len(trees),
        of_the_mean=alpha(table),
        of_one_seed=one,
        upper_half=alpha(better),
        between_paths=float(table.mean(axis=1).std(ddof=1)),
        within=float(np.sqrt((left**2).sum() / freedom)),
    )


def alpha(table: NDArray[np.float64]) -> float:
    """Cronbach's alpha of [paths, seeds]: the reliability of the seeds' mean. 0 where no path differs from another."""
    seeds = table.shape[1]
    total = table.sum(axis=1).var(ddof=1)
    return 0.0 if total == 0 else float(seeds / (seeds - 1) * (1 - table.var(axis=0, ddof=1).sum() / total))


def _one_rater(table: NDArray[np.float64]) -> float:
    """The reliability of a single seed, from that of the mean (Spearman and Brown backwards)."""
    of_mean, seeds = alpha(table), table.shape[1]
    return of_mean / (seeds - (seeds - 1) * of_mean)


@dataclass(frozen=True)
class Agreement:
    """How often the atlas orders two engineers as real runs do, over pairs that real runs tell apart."""

    pairs: int
    resolved: int
    agree: float  # ties in the atlas count half


def agreement(atlas: Mapping[str, Mapping[int, float]], real: Mapping[str, Mapping[int, float]]) -> Agreement:
    """Both by engineer and seed. A pair is resolved where the 95 % interval of its paired real difference excludes 0."""
    names = [name for name in atlas if name in real]
    pairs = [(one, other) for place, one in enumerate(names) for other in names[place + 1 :]]
    resolved = 0
    agree = 0.0
    for one, other in pairs:
        seeds = [seed for seed in real[one] if seed in real[other]]
        truth = t_mean([real[one][seed] - real[other][seed] for seed in seeds])
        if truth.low is None or truth.high is None or truth.low <= 0 <= truth.high:
            continue
        resolved += 1
        found = fmean(atlas[one].values()) - fmean(atlas[other].values())
        agree += 0.5 if found == 0 else float((found > 0) == (truth.mean > 0))
    return Agreement(len(pairs), resolved, agree)
