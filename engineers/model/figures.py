"""Figures from a report's counts: over all slices, from stage to stage, beside chance, and within the stage."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any

from engineers.report import SliceResult, Split, StageRecord, wilson

ALL = "all slices"
QUARTERS = 4
FALLS = 3  # largest falls of success that a prompt names
SURE = 1.96  # standard errors of a 95 % interval


def rate_in(result: SliceResult, objective: str) -> float | None:
    """A slice's rate of the objective, which a probe may name ``success_rate``; None if it is not a rate."""
    value = result.metrics.get(objective, result.metrics.get("success_rate"))
    return value if value is not None and result.episodes and 0 <= value <= 1 else None


@dataclass(frozen=True)
class Overall:
    """Success over all slices, and its standard error."""

    rate: float
    error: float

    def __str__(self) -> str:
        return f"{self.rate:.2f} ± {SURE * self.error:.2f}"


def overall(results: Sequence[SliceResult], objective: str, weights: Mapping[str, float]) -> Overall | None:
    """Success over the slices by their weights in the target; by their episodes, where the target names none of them."""
    rows = [(result, rate) for result in results if (rate := rate_in(result, objective)) is not None]
    weight = {result.name: max(weights.get(result.name, 0.0), 0.0) for result, _ in rows}
    if not sum(weight.values()):
        weight = {result.name: float(result.episodes) for result, _ in rows}
    total, found, variance = sum(weight.values()), 0.0, 0.0
    for result, rate in rows:
        part, smoothed = weight[result.name] / total, (rate * result.episodes + 1) / (result.episodes + 2)
        found += part * rate
        variance += part**2 * smoothed * (1 - smoothed) / result.episodes
    return Overall(found, math.sqrt(variance)) if rows else None


def by_stage(records: Sequence[StageRecord], objective: str, weights: Mapping[str, float]) -> list[Overall]:
    """Success over all slices after each stage; a stage that was not validated is left out."""
    return [found for record in records if (found := overall(record.results, objective, weights)) is not None]


def typical_gain(stages: Sequence[Overall]) -> float:
    return fmean(after.rate - before.rate for before, after in pairwise(stages))


def chance(stages: Sequence[Overall]) -> float:
    """The difference between the last two stages that chance alone exceeds in 1 of 20 cases."""
    return SURE * math.sqrt(sum(stage.error**2 for stage in stages[-2:]))


@dataclass(frozen=True)
class Starved:
    """A slice that had succeeded and then got far fewer episodes in a stage, or none: both numbers, and its success before and after."""

    name: str
    episodes: tuple[int, int]
    success: tuple[float, float]

    @property
    def change(self) -> float:
        return self.success[1] - self.success[0]

    def __str__(self) -> str:
        (many, few), (was, now) = self.episodes, self.success
        return f"{self.name} {was:.2f} → {now:.2f} ({many} episodes, then {few or 'none'})"


def starved(records: Sequence[StageRecord], objective: str) -> list[Starved]:
    """What became of slices that got at most half the episodes of the stage before, largest fall first: their success on validation after both
    stages, or else in training, from the last half of the one before. Where there were none, it is that of the first half with some again.
    """
    found = []
    for place, (before, after) in enumerate(pairwise(records)):
        given = {row.name: row for row in after.training_results}
        for row in before.training_results if given else []:
            name, few = row.name, given.get(row.name)
            if few is not None and 2 * few.played > row.played:
                continue
            was, now = _rate_of(before.results, name, objective), _rate_of(after.results, name, objective)
            if was is None or now is None:
                later = (row for record in records[place + 2 :] for row in record.training_results if row.name == name)
                was = _in_half(row, -1, objective)
                now = rate_in(few, objective) if few is not None else _in_half(next(later, None), 0, objective)
            if was and now is not None:
                found.append(Starved(name, (row.played, few.played if few is not None else 0), (was, now)))
    return sorted(found, key=lambda one: one.change)


def largest_falls(found: Sequence[Starved]) -> list[Starved]:
    """The ``FALLS`` largest, one of each slice."""
    of_slice = {one.name: one for one in reversed(found) if one.change < 0}
    return sorted(of_slice.values(), key=lambda one: one.change)[:FALLS]


def until_success(records: Sequence[StageRecord], objective: str) -> tuple[list[int], list[int]]:
    """Episodes of each slice that began without success in training: until the stage of its first success had ended, and, of those that
    have none yet, so far.
    """
    reached, pending = list[int](), list[int]()
    for name in dict.fromkeys(row.name for record in records for row in record.training_results):
        rows = [row for record in records for row in record.training_results if row.name == name]
        first = next((place for place, row in enumerate(rows) if rate_in(row, objective)), None)
        if first is None:
            pending.append(sum(row.played for row in rows))
        elif first > 0:
            reached.append(sum(row.played for row in rows[: first + 1]))
    return sorted(reached), sorted(pending)


def _rate_of(results: Sequence[SliceResult], name: str, objective: str) -> float | None:
    return next((rate_in(result, objective) for result in results if result.name == name), None)


def _in_half(result: SliceResult | None, half: int, objective: str) -> float | None:
    """Success in one half of a stage; in all of it, where the half had no episodes or halves are not told."""
    if result is None:
        return None
    split = result.halves[half] if result.halves else None
    return rate_in(result, objective) if split is None else split.succeeded / split.episodes


def quarters(training: dict[str, Any], objective: str) -> tuple[str, list[float]]:
    """Where success was measured, and what it was by quarters of the stage: on validation if it was played often enough, else in training."""
    for where, name in (("on validation", f"{objective}_curve"), ("in training", "success_rate_curve")):
        curve = training.get(name)
        if isinstance(curve, list) and len(curve) >= QUARTERS:
            ends = [round(len(curve) * part / QUARTERS) for part in range(QUARTERS + 1)]
            return where, [fmean(curve[start:end]) for start, end in pairwise(ends)]
    return "", []


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
