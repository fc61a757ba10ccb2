"""What reading can be worth on a target, and what an engineer's reading is worth there.

A schedule is *open loop* if every config is fixed before training begins. An engineer that reads reports is worth what it
gains over the best open-loop schedule; over anything weaker it may owe its gain to a warm-up or to knowing the target.

How a study is made:

1. On development roots, every schedule and every engineer gets the same number of search configurations.
2. Some open-loop schedules go on: those named in advance, and the best of the searched ones.
3. Everything that goes on runs on fresh roots, with at least two training seeds each.
4. ``gain`` compares an arm with these schedules. For the best policy that sees the hidden state, the gain is the target's
   *headroom*; for an engineer, it is what that engineer is worth.

All success is given as fractions, [roots, training seeds]; root and training seed are the same in all arms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engineers.counts import counted
from envtuning.studies.intervals import FEWEST
from envtuning.studies.student_t import t_quantile

CONFIDENCE = 0.95  # of the one-sided bound
FEWEST_TRAINING_SEEDS = 2  # with one, an oracle is chosen and scored on the same outcomes

Success = Mapping[str, ArrayLike]


@dataclass(frozen=True)
class Gain:
    """How far an arm lies above the best open-loop schedule."""

    arm: str
    above: str  # the schedule over which the mean gain is least
    mean: float
    low: float | None  # the one-sided 95 % bound over roots; None for a single root
    roots: int
    training_seeds: int
    oracle: bool = True  # whether the arm is a choice made in hindsight; an engineer's arm is none
    matched: bool = True  # whether one of the schedules warms up before the target; else the gain may be a warm-up

    @property
    def found(self) -> str:
        """'some', 'none found', or 'open' where the outcomes cannot tell."""
        if self.low is None or (self.roots < FEWEST and self.low > 0):
            return "open"
        if self.low <= 0:
            return "none found"
        chosen_fairly = self.training_seeds >= FEWEST_TRAINING_SEEDS or not self.oracle
        return "some" if chosen_fairly and self.matched else "open"


def gain(
    success: Success, arm: str, open_loop: Sequence[str], *, confidence: float = CONFIDENCE, oracle: bool = True
) -> Gain:
    """The least mean gain over any open-loop schedule, and the least bound.

    The arm is above the best schedule only if it is above each of them, so each is tested at the full level and no
    correction is due (an intersection-union test).
    """
    if not open_loop:
        raise ValueError("no open-loop schedule is given: name at least one, such as even draws over the target")
    ours = _table(success, arm)
    differences = {name: (ours - _table(success, name)).mean(axis=1) for name in open_loop}
    nearest = min(open_loop, key=lambda name: float(differences[name].mean()))
    bounds = [lower_bound(column, confidence) for column in differences.values()]
    return Gain(
        arm=arm,
        above=nearest,
        mean=float(differences[nearest].mean()),
        low=None if None in bounds else min(bound for bound in bounds if bound is not None),
        roots=len(ours),
        training_seeds=ours.shape[1],
        oracle=oracle,
    )


def best_reader(success: Success, readers: Sequence[str], open_loop: Sequence[str]) -> Gain:
    """What the best arm that reads is worth: its bound allows for the choice among them (Bonferroni)."""
    level = 1 - (1 - CONFIDENCE) / len(readers)
    found = [gain(success, name, open_loop, confidence=level, oracle=False) for name in readers]
    return max(found, key=lambda one: one.mean if one.low is None else one.low)


def lower_bound(values: ArrayLike, confidence: float = CONFIDENCE) -> float | None:
    """The mean's one-sided lower bound by Student's t; None for a single value."""
    column = np.asarray(values, float)
    if len(column) < 2:
        return None
    return float(column.mean() - t_quantile(confidence, len(column) - 1) * column.std(ddof=1) / len(column) ** 0.5)


def lowest(bound: float) -> str:
    """A lower bound in points; with two seeds it may lie below what is possible."""
    return f"{100 * max(bound, -1.0):+.1f}"


def in_words(found: Gain | None) -> str:
    """The line that stands under a published study; None: arms that read, or arms that do not, are missing."""
    if found is None:
        return "Closed-loop headroom: not measured, because it takes an arm that reads and one that does not."
    points = f"{100 * abs(found.mean):.1f} points {'above' if found.mean >= 0 else 'below'} `{found.above}`"
    bound = "" if found.low is None else f", one-sided 95 % bound {lowest(found.low)}"
    if found.low is not None and not found.oracle:
        bound += " (which allows for the choice if several arms read)"
    chosen = "the best arm that reads" if found.low is None else "the arm that reads with the highest bound"
    whose = "the best choice in hindsight" if found.oracle else f"`{found.arm}`, {chosen},"
    seeds = counted(found.training_seeds, "training seed")
    measured = (
        counted(found.roots, "seed") if found.training_seeds == 1 else f"{counted(found.roots, 'root')}, {seeds} each"
    )
    unclear = (
        "no arm here warms up before the target, so this may be a warm-up"
        if not found.matched
        else "the choice was made on the outcomes that it is scored on, so this is an upper limit"
        if found.oracle
        else "fewer than three seeds say too little"
    )
    verdict = {
        "some": "some: reading can pay here",
        "none found": "none found: this says nothing about reading",
        "open": f"open: {unclear}",
    }[found.found]
    return f"Closed-loop headroom: {whose} ends {points}{bound} ({measured}): {verdict}."


def _table(success: Success, arm: str) -> NDArray[np.float64]:
    table = np.asarray(success[arm], float)
    return table[:, None] if table.ndim == 1 else table
