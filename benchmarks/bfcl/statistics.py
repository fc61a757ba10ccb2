"""What a condition recovers, with intervals for means over tasks. Scenarios are resampled, not tasks: the variants of one scenario are not independent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.bfcl.measure import Sample


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


def summary(samples: Sequence[Sample], solved: Sequence[bool]) -> dict[str, Any]:
    """Micro: the mean over all samples. Macro: the mean over the faults' variants. Both with an interval over scenarios."""
    if not samples:
        return {"n": 0}
    by_variant: dict[str, list[bool]] = {}
    for sample, value in zip(samples, solved):
        by_variant.setdefault(sample.fault.variant, []).append(value)
    rates = {variant: sum(values) / len(values) for variant, values in sorted(by_variant.items())}
    scenarios = [sample.task.scenario for sample in samples]
    low, high = scenario_interval([float(value) for value in solved], scenarios)
    macro = macro_interval(solved, [sample.fault.variant for sample in samples], scenarios)
    return {
        "n": len(samples),
        "micro": round(sum(solved) / len(samples), 4),
        "interval": [round(low, 4), round(high, 4)],
        "macro": round(sum(rates.values()) / len(rates), 4),
        "macro_interval": [round(bound, 4) for bound in macro],
        "variants": {variant: round(rate, 3) for variant, rate in rates.items()},
    }
