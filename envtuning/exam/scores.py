"""What sittings are worth: points over the best open loop, and the part of the oracle's gain, with intervals over roots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from envtuning.exam.families import NULL
from envtuning.exam.sitting import BOUNDS, EVEN, OPEN_LOOP, ORACLE, Sitting
from envtuning.studies.intervals import Interval, t_mean

DRAWS = 2_000  # of the bootstrap
Ends = dict[str, dict[int, float]]  # mean success by family and root


@dataclass(frozen=True)
class FamilyScore:
    """An engineer on one family."""

    success: float
    over_open_loop: Interval
    over_even: Interval

    @property
    def below_even(self) -> bool:
        """Whether it is worse than no curriculum at all, as far as the interval tells."""
        return self.over_even.high is not None and self.over_even.high < 0


@dataclass(frozen=True)
class Score:
    engineer: str
    reads: str
    families: dict[str, FamilyScore]
    part: Interval | None  # of the oracle's gain, over all families but the null one; None: nothing to gain
    failed: int  # decisions that were refused or not taken
    decided: int
    cost: float | None

    @property
    def gain(self) -> float:
        """Mean points over the best open loop, by which a table is sorted."""
        return fmean(one.over_open_loop.mean for one in self.families.values())


def scores(sittings: Sequence[Sitting]) -> list[Score]:
    """A score for every bound and engineer, the best first."""
    ends: dict[tuple[str, str], Ends] = {}
    for who in dict.fromkeys(map(name_of, sittings)):
        own = [one for one in sittings if name_of(one) == who]
        names = dict.fromkeys(one.paper.family.name for one in own)
        ends[who] = {name: by_root([one for one in own if one.paper.family.name == name]) for name in names}
    bounds = {name: ends[name, "scores"] for name in BOUNDS}
    found = [score_of(who, ends[who], bounds, [one for one in sittings if name_of(one) == who]) for who in ends]
    return sorted(found, key=lambda one: -one.gain)


def name_of(sitting: Sitting) -> tuple[str, str]:
    """Who sat, with the options that differ from the default, and what was read."""
    options = ", ".join(f"{name}={value}" for name, value in sitting.paper.options.items())
    return f"{sitting.paper.engineer}({options})" if options else sitting.paper.engineer, sitting.paper.reads


def by_root(sittings: Sequence[Sitting]) -> dict[int, float]:
    roots = sorted({one.paper.root for one in sittings})
    return {root: fmean(one.end for one in sittings if one.paper.root == root) for root in roots}


def score_of(who: tuple[str, str], ends: Ends, bounds: dict[str, Ends], own: Sequence[Sitting]) -> Score:
    def over(bound: str, name: str, them: Ends = ends) -> list[float]:
        return [them[name][root] - bounds[bound][name][root] for root in ends[name]]

    families = {
        name: FamilyScore(fmean(of.values()), t_mean(over(OPEN_LOOP, name)), t_mean(over(EVEN, name)))
        for name, of in ends.items()
    }
    gains = {name: np.array(over(OPEN_LOOP, name)) for name in ends if name != NULL}
    ceilings = {name: np.array(over(OPEN_LOOP, name, bounds[ORACLE])) for name in gains}
    asked = [one for one in own if one.paper.engineer not in BOUNDS]
    costs = [one.usage.cost for one in own if one.usage.tokens and one.usage.cost is not None]
    return Score(
        *who, families, part_of(gains, ceilings), sum(len(one.failures) for one in asked),
        sum(one.paper.decisions - 1 for one in asked), sum(costs) if costs else None,
    )  # fmt: skip


def part_of(gains: dict[str, Any], ceilings: dict[str, Any]) -> Interval | None:
    """The sum of the gains over the sum of the oracle's, with a 95 % bootstrap interval: families are drawn, and roots within them."""
    names = list(gains)
    if not names or sum(float(ceilings[name].mean()) for name in names) <= 0:
        return None
    rng, drawn = np.random.default_rng(0), []
    for _ in range(DRAWS):
        above = below = 0.0
        for name in rng.choice(names, len(names)):
            roots = rng.integers(0, len(gains[name]), len(gains[name]))
            above += gains[name][roots].mean()
            below += ceilings[name][roots].mean()
        drawn.append(above / below if below > 0 else np.inf)
    mean = sum(float(gains[name].mean()) for name in names) / sum(float(ceilings[name].mean()) for name in names)
    if min(map(len, gains.values())) < 3:
        return Interval(mean, None, None)
    with np.errstate(invalid="ignore"):  # between two infinite ones
        ends = np.quantile(drawn, (0.025, 0.975))
    if not np.isfinite(ends).all():  # too often nothing was to gain, and a file has no word for it
        return Interval(mean, None, None)
    return Interval(mean, *map(float, ends))
