"""Intervals for means over tasks. Scenarios are resampled, not tasks: the variants of one scenario are not independent."""

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


def macro_interval(
    values: Sequence[float], groups: Sequence[str], scenarios: Sequence[int], *, draws: int = 2_000, seed: int = 0
) -> tuple[float, float]:
    """The 95 % percentile bootstrap interval of the mean over the groups' means. If a resample lacks a group, the mean is over the others."""
    group_names, group = np.unique(groups, return_inverse=True)
    scenario_names, scenario = np.unique(scenarios, return_inverse=True)
    sums = np.zeros((len(scenario_names), len(group_names), 2))  # (sum, count)
    np.add.at(sums, (scenario, group), np.stack([np.asarray(values, float), np.ones(len(values))], axis=1))
    picks = np.random.default_rng(seed).integers(len(sums), size=(draws, len(sums)))
    times = np.stack([np.bincount(row, minlength=len(sums)) for row in picks])  # how often a resample has each scenario
    drawn = np.tensordot(times, sums, axes=1)
    with np.errstate(invalid="ignore"):
        macros = np.nanmean(drawn[..., 0] / drawn[..., 1], axis=1)
    low, high = np.quantile(macros, [0.025, 0.975])
    return float(low), float(high)
