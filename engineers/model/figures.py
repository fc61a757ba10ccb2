"""Figures from a report's counts: over all slices, from stage to stage, beside chance, and within the stage."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

from engineers.report import SliceResult, Split, StageRecord, wilson

ALL = "all slices"
QUARTERS = 4
SURE = 1.96  # standard errors of a 95 % interval


def rate_in(result: SliceResult, objective: str) -> float | None:
    """A slice's rate of the objective, which a probe may name ``success_rate``; None if it is not a rate."""
    value = result.metrics.get(objective, result.metrics.get("success_rate"))
    return value if value is not None and result.episodes and 0 <= value <= 1 else None


def pooled(results: Sequence[SliceResult], objective: str) -> SliceResult | None:
    """The slices as one row, with equal weight for every episode; None unless two slices have a rate."""
    counted = [(result, rate) for result in results if (rate := rate_in(result, objective)) is not None]
    if len(counted) < 2:
        return None
    episodes = sum(result.episodes for result, _ in counted)
    failures: Counter[str] = Counter()
    for result, _ in counted:
        failures.update(result.failures)
    rate = sum(rate * result.episodes for result, rate in counted) / episodes
    return SliceResult(name=ALL, episodes=episodes, metrics={objective: rate}, failures=dict(failures))


def by_stage(records: Sequence[StageRecord], objective: str) -> list[tuple[float, int]]:
    """Success over all slices after each stage, and of how many episodes; a stage that was not validated is left out."""
    rows = [pooled(record.results, objective) or next(iter(record.results), None) for record in records]
    return [(rate, row.episodes) for row in rows if row and (rate := rate_in(row, objective)) is not None]


def typical_gain(stages: Sequence[tuple[float, int]]) -> float:
    return fmean(after - before for (before, _), (after, _) in pairwise(stages))


def chance(stages: Sequence[tuple[float, int]]) -> float:
    """The difference between the last two stages that chance alone exceeds in 1 of 20 cases."""
    variances = []
    for rate, episodes in stages[-2:]:
        smoothed = (rate * episodes + 1) / (episodes + 2)
        variances.append(smoothed * (1 - smoothed) / episodes)
    return SURE * math.sqrt(sum(variances))


def quarters(training: dict[str, Any], objective: str) -> list[float]:
    """Success by quarters of the stage: on validations if there were enough, else in training."""
    for name in (f"{objective}_curve", "success_rate_curve"):
        curve = training.get(name)
        if isinstance(curve, list) and len(curve) >= QUARTERS:
            ends = [round(len(curve) * part / QUARTERS) for part in range(QUARTERS + 1)]
            return [fmean(curve[start:end]) for start, end in pairwise(ends)]
    return []


def parts_of(splits: dict[str, dict[str, Split]], results: Sequence[SliceResult]) -> dict[str, dict[str, Split]]:
    """The splits that say more than their slices, and with several slices also the splits over all of them."""
    whole = {result.name: result.episodes for result in results}
    rows = dict(splits)
    if len(splits) > 1:
        names = dict.fromkeys(part for parts in splits.values() for part in parts)
        rows[ALL] = {name: _together([parts[name] for parts in splits.values() if name in parts]) for name in names}
        whole[ALL] = sum(whole.get(name, 0) for name in splits)
    told = {
        name: {part: split for part, split in parts.items() if split.episodes != whole.get(name)}
        for name, parts in rows.items()
    }
    return {name: parts for name, parts in told.items() if parts}


def _together(splits: Sequence[Split]) -> Split:
    return Split(episodes=sum(split.episodes for split in splits), succeeded=sum(split.succeeded for split in splits))


def in_interval(succeeded: int, episodes: int) -> str:
    low, high = wilson(succeeded / episodes, episodes)
    return f"{succeeded} of {episodes} [{low:.2f}, {high:.2f}]"
