"""Scores of walks: success on the test at the leaf, beside the best path and the rows that need no engineer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from engineers.tiers import UNKNOWN, Tier
from envtuning.atlas.spec import Path_
from envtuning.atlas.store import Tree
from envtuning.atlas.walk import Player, Walk, walk
from envtuning.studies.closed_loop import Gain, cross_scored, gain
from envtuning.studies.intervals import Interval, t_mean

RELIABLE = 0.8  # least reliability of a published tree: the order comes from the paths and not from the seeds


@dataclass(frozen=True)
class Nearness:
    """The distance of free answers from the entries that were trained instead."""

    distances: list[float]
    spacings: list[float]

    @property
    def median(self) -> float:
        return median(self.distances)

    @property
    def bound(self) -> float:
        """Half of the entries' spacing: beyond it, an answer is about as near to another entry as to its own."""
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
    fault: str = ""  # the fault of the first unusable answer
    tier: Tier = UNKNOWN  # the highest kind of information that was used

    @property
    def counts(self) -> bool:
        """Whether there is a score: not if free answers were too far from their entries."""
        return self.nearness is None or self.nearness.holds

    @property
    def success(self) -> Interval:
        return t_mean(list(self.values.values()))


def references(trees: Sequence[Tree]) -> list[Row]:
    """Best path, chosen on the other seeds; the oracle of one step; the target at every step; the mean of all paths."""
    target = trees[0].spec.target_entry
    alone = [] if target is None else [same_entry("target only", trees, target, Tier.TARGET)]
    rows = [greedy(trees), *alone, mean_path(trees)]
    return [best_path(trees), *rows] if len(trees) > 1 else rows


def leaves(tree: Tree) -> list[Path_]:
    return list(tree.spec.paths(tree.spec.depth))


def best_path(trees: Sequence[Tree]) -> Row:
    """For each seed the leaf that is best in the mean of the other seeds: the value of knowing the tree, but not the seed."""
    found: dict[int, Path_] = {}
    for tree in trees:
        others = [other for other in trees if other is not tree]
        found[tree.seed] = max(leaves(tree), key=lambda path: fmean(other.tested[path] for other in others))
    return _row("best path", trees, found, Tier.FAMILY)


def greedy(trees: Sequence[Tree]) -> Row:
    """Sees the validation result of every child, and takes the best, step by step."""
    found = {}
    for tree in trees:
        path: Path_ = ()
        while len(path) < tree.spec.depth:
            path = max(((*path, name) for name in tree.spec.menu), key=tree.validated)
        found[tree.seed] = path
    return _row("one-step oracle", trees, found, Tier.HINDSIGHT)


def same_entry(name: str, trees: Sequence[Tree], entry: str, tier: Tier = Tier.NOTHING) -> Row:
    return _row(name, trees, {tree.seed: (entry,) * tree.spec.depth for tree in trees}, tier)


def mean_path(trees: Sequence[Tree]) -> Row:
    """The value of choosing at random."""
    mean = {tree.seed: fmean(tree.tested[path] for path in leaves(tree)) for tree in trees}
    return Row("mean path", mean, {}, tier=Tier.NOTHING)


def _row(name: str, trees: Sequence[Tree], paths: Mapping[int, Path_], tier: Tier) -> Row:
    return Row(name, {tree.seed: tree.tested[paths[tree.seed]] for tree in trees}, dict(paths), tier=tier)


def row_of(
    name: str,
    trees: Sequence[Tree],
    player: Player,
    walked: Callable[[Walk], None] = lambda walk: None,
    tier: Tier = UNKNOWN,
) -> Row:
    """The walk of an engineer that knows so much through every seed's tree. ``walked`` hears of each."""
    walks = []
    for tree in trees:
        walks.append(walk(tree, player))
        walked(walks[-1])
    return row_from(name, trees, walks, tier)


def row_from(name: str, trees: Sequence[Tree], walks: Sequence[Walk], tier: Tier) -> Row:
    """The row that walks give, one through every seed's tree."""
    steps = [step for one in walks for step in one.steps]
    near = None
    if steps[0].distance is not None:
        near = Nearness([step.distance or 0.0 for step in steps], [step.spacing or 0.0 for step in steps])
    costs = [step.usage.cost for step in steps]
    return Row(
        name=name,
        values={tree.seed: tree.tested[one.path] for tree, one in zip(trees, walks, strict=True)},
        paths={one.seed: one.path for one in walks},
        tier=tier,
        nearness=near,
        fallbacks=sum(step.fallback for step in steps),
        tokens=sum(step.usage.tokens for step in steps),
        cost=None if None in costs else sum(cost or 0.0 for cost in costs),
        fault=next(("; ".join(step.refusals) or "it gave no config" for step in steps if step.fallback), ""),
    )


def above_open_loop(row: Row, rows: Sequence[Row]) -> Gain | None:
    """The gain of a row that reads over the best one that reads nothing; None without such a pair."""
    blind = [one for one in rows if one.counts and not one.tier.reads]
    if not row.tier.reads or not row.counts or not blind:
        return None
    success = {one.name: list(one.values.values()) for one in [*blind, row]}
    return gain(success, row.name, [one.name for one in blind], oracle=row.tier == Tier.HINDSIGHT)


def headroom(trees: Sequence[Tree]) -> Gain:
    """How far the best path of each seed, by its own validation, ends above the best that is the same for all.

    The latter is the best path on the other seeds, or one entry at every step. A tree was trained once for each seed, so choice
    and score use the same outcomes: it may show that there is no headroom, and can never show that there is some.
    """
    paths = leaves(trees[0])
    validated = [[[tree.validated(path) for path in paths]] for tree in trees]
    tested = [[[tree.tested[path] for path in paths]] for tree in trees]
    fixed = [same_entry(name, trees, name) for name in trees[0].spec.menu]
    blind = [*fixed, best_path(trees)] if len(trees) > 1 else fixed
    success = {row.name: list(row.values.values()) for row in blind}
    return gain(
        success | {"own best path": cross_scored(validated, tested)}, "own best path", [row.name for row in blind]
    )


@dataclass(frozen=True)
class Reliability:
    """The part of the differences between paths that is due to the paths (Cronbach's alpha, seeds as raters)."""

    seeds: int
    of_the_mean: float  # over all seeds, as in the tables
    of_one_seed: float
    upper_half: float  # of the mean, among the better half of the paths
    between_paths: float  # standard deviation of the paths' means
    within: float  # standard deviation of a path's seeds around its mean, the seeds' own levels taken out

    @property
    def ships(self) -> bool:
        return self.of_the_mean >= RELIABLE

    @property
    def seeds_needed(self) -> int | None:
        """The number of seeds for a reliable mean (Spearman and Brown); None if no number is enough."""
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
    """How often the atlas and real runs order two engineers in the same way, over pairs that real runs distinguish."""

    pairs: int
    resolved: int
    agree: float  # ties in the atlas count half


def agreement(atlas: Mapping[str, Mapping[int, float]], real: Mapping[str, Mapping[int, float]]) -> Agreement:
    """Arguments are by engineer and seed. A pair is resolved if the 95 % interval of its paired real difference excludes 0."""
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
