"""What an engineer's reading is worth: its gain over the best schedule that reads nothing.

A schedule is *open loop* if every config is fixed before training begins. An engineer that reads reports is worth what it
gains over the best open-loop schedule; over anything weaker it may owe its gain to a warm-up or to knowing the target.

All success is given as fractions, one for each seed; the seeds are the same in all arms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from engineers.shared.counts import counted
from envtuning.studies.intervals import FEWEST, half_width

CONFIDENCE = 0.95  # of the one-sided bound

Success = Mapping[str, ArrayLike]


@dataclass(frozen=True)
class Gain:
    """How far an arm lies above the best open-loop schedule."""

    arm: str
    above: str  # the schedule over which the mean gain is least
    mean: float
    low: float | None  # the one-sided 95 % bound over seeds; None for a single seed
    seeds: int
    matched: bool = True  # whether one of the schedules warms up before the target; else the gain may be a warm-up

    @property
    def found(self) -> str:
        """'some', 'none found', or 'open' where the outcomes cannot tell."""
        if self.low is None or (self.seeds < FEWEST and self.low > 0):
            return "open"
        if self.low <= 0:
            return "none found"
        return "some" if self.matched else "open"


def gain(success: Success, arm: str, open_loop: Sequence[str], *, confidence: float = CONFIDENCE) -> Gain:
    """The least mean gain over any open-loop schedule, and the least bound.

    The arm is above the best schedule only if it is above each of them, so each is tested at the full level and no
    correction is due (an intersection-union test).
    """
    if not open_loop:
        raise ValueError("no open-loop schedule is given: name at least one, such as even draws over the target")
    ours = np.asarray(success[arm], float)
    differences = {name: ours - np.asarray(success[name], float) for name in open_loop}
    nearest = min(open_loop, key=lambda name: float(differences[name].mean()))
    bounds = [lower_bound(column, confidence) for column in differences.values()]
    return Gain(
        arm=arm,
        above=nearest,
        mean=float(differences[nearest].mean()),
        low=None if None in bounds else min(bound for bound in bounds if bound is not None),
        seeds=len(ours),
    )


def best_reader(success: Success, readers: Sequence[str], open_loop: Sequence[str]) -> Gain:
    """What the best arm that reads is worth: its bound allows for the choice among them (Bonferroni)."""
    level = 1 - (1 - CONFIDENCE) / len(readers)
    found = [gain(success, name, open_loop, confidence=level) for name in readers]
    return max(found, key=lambda one: one.mean if one.low is None else one.low)


def lower_bound(values: ArrayLike, confidence: float = CONFIDENCE) -> float | None:
    """The mean's one-sided lower bound by Student's t; None for a single value."""
    column = np.asarray(values, float)
    if len(column) < 2:
        return None
    return float(column.mean() - half_width(column.std(ddof=1), len(column), confidence))


def lowest(bound: float) -> str:
    """A lower bound in points; with two seeds it may lie below what is possible."""
    return f"{100 * max(bound, -1.0):+.1f}"


def in_words(found: Gain | None) -> str:
    """The line that stands under a published study; None: arms that read, or arms that do not, are missing."""
    if found is None:
        return "Closed-loop headroom: not measured, because it takes an arm that reads and one that does not."
    points = f"{100 * abs(found.mean):.1f} points {'above' if found.mean >= 0 else 'below'} `{found.above}`"
    chosen, bound = "the best arm that reads", ""
    if found.low is not None:
        chosen = "the arm that reads with the highest bound"
        bound = f", one-sided 95 % bound {lowest(found.low)} (which allows for the choice if several arms read)"
    unclear = (
        "fewer than three seeds say too little"
        if found.matched
        else "no arm here warms up before the target, so this may be a warm-up"
    )
    verdict = {
        "some": "some: reading can pay here",
        "none found": "none found: this says nothing about reading",
        "open": f"open: {unclear}",
    }[found.found]
    return f"Closed-loop headroom: `{found.arm}`, {chosen}, ends {points}{bound} ({counted(found.seeds, 'seed')}): {verdict}."
