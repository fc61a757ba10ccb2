"""How much of the budget the best schedule that reads nothing needs to come as far as the best arm that reads.

Points hide this where curves bend: two points near the top of a curve can be half of the budget. Both sides are means over seeds
of success in validation, where the curve is; the test is opened only once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from envtuning.studies.closed_loop import Gain
from envtuning.studies.outcomes import Curve, Outcome


def needed(curves: Sequence[Curve], success: float) -> float | None:
    """What is spent when the mean curve first reaches this success, on straight lines between validations; None: never.

    Each seed's curve begins with its first validation. Before it the curve is taken as level, so the answer may be too early there.
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
    """Spent, and mean success there; each seed's curve is read at every point of any seed."""
    points = [np.array(curve, float) for curve in curves]
    spent = np.unique(np.concatenate([point[:, 0] for point in points]))
    return spent, np.mean([np.interp(spent, point[:, 0], point[:, 1]) for point in points], axis=0)


def in_words(outcomes: Sequence[Outcome], headroom: Gain | None, budget: int) -> str:
    """The sentence after the headroom's; empty where outcomes were stored without their curves."""
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
