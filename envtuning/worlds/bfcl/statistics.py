"""Intervals for means over tasks. Scenarios are resampled, not tasks: a scenario's variants are no independent draws."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np


def scenario_interval(
    values: Sequence[float], scenarios: Sequence[int], *, draws: int = 2_000, seed: int = 0
) -> tuple[float, float]:
    """The 95 % percentile bootstrap interval of the mean over values; (nan, nan) for no values."""
    if len(values) != len(scenarios):
        raise ValueError(f"{len(values)} values and {len(scenarios)} scenarios: give one scenario per value")
    if not values:
        return float("nan"), float("nan")
    totals: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for value, scenario in zip(values, scenarios):
        totals[scenario][0] += value
        totals[scenario][1] += 1
    sums = np.array(list(totals.values()))  # scenario, (sum, count)
    picks = np.random.default_rng(seed).integers(len(sums), size=(draws, len(sums)))
    drawn = sums[picks].sum(axis=1)
    low, high = np.quantile(drawn[:, 0] / drawn[:, 1], [0.025, 0.975])
    return float(low), float(high)
