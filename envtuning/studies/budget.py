"""The part of the budget that the best open-loop schedule needs to reach the success of the best arm that reads, and the reverse.

A difference in points can hide this: two points near the top of a curve may cost half of the budget. Both curves are means over seeds
of the success in validation, because the test is opened only once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from envtuning.studies.closed_loop import Gain
from envtuning.studies.outcomes import Curve, Outcome


def needed(curves: Sequence[Curve], success: float) -> float | None:
    """The cost at which the mean curve first reaches this success, by straight lines between validations; None: never.

    Before its first validation a curve counts as level, so an answer there may be too early.
    """
    spent, mean = mean_curve(curves)
    reached = np.flatnonzero(mean >= success)
    if not reached.size:
        return None
    end = int(reached[0])
    if end == 0:
        return float(spent[0])
    rise = (success - mean[end - 1]) / (mean[end] - mean[end - 1])
    return float(spent[end - 1] + rise * (spent[end] - spent[end - 1]))


def mean_curve(curves: Sequence[Curve]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The costs of all points, and the mean success at each of them, by straight lines between a seed's own points."""
    points = [np.array(curve, float) for curve in curves]
    spent = np.unique(np.concatenate([point[:, 0] for point in points]))
    return spent, np.mean([np.interp(spent, point[:, 0], point[:, 1]) for point in points], axis=0)


def in_words(outcomes: Sequence[Outcome], headroom: Gain | None, budget: int) -> str:
    """The sentence after that on the headroom; empty if the outcomes have no curves."""
    if headroom is None:
        return ""
    ours, theirs = (
        {one.seed: one.curve for one in outcomes if one.arm == arm and one.curve}
        for arm in (headroom.arm, headroom.above)
    )
    seeds = sorted(ours.keys() & theirs.keys())
    if not seeds:
        return ""
    last = float(np.mean([ours[seed][-1][1] for seed in seeds]))
    spent = needed([theirs[seed] for seed in seeds], last)
    how_far = f"In validation `{headroom.arm}` ends at {100 * last:.1f} %"
    if spent is None:
        return f"{how_far}; `{headroom.above}` does not reach this within the budget."
    return f"{how_far}; `{headroom.above}` reaches this with {100 * spent / budget:.0f} % of the budget."
