"""``progress-share``: gives a slice of the target more data, the faster its success changes.

Falling success counts like rising success, because practice also helps after forgetting. If nothing changes, all slices get the
same. Difficulties move to the target in even steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from pydantic import BaseModel

from engineers.knobs import Knob, dump
from engineers.plain.base import Design
from engineers.plain.rules import even_pace
from engineers.plain.shares import mixed_with_uniform
from engineers.plain.signals import signals, variance
from engineers.plain.way import Walker, Way, shares_ahead
from engineers.report import StageRecord, StageReport, read_first
from engineers.roles import find_slices, with_beside
from engineers.tiers import Tier

UNIFORM_PART = 0.3  # exploration
SMOOTHING = 0.5  # weight of the newest change; older ones fade
SETTLED = 0.5  # part of the rounds that is spent on the target's own difficulties


class ProgressShareEngineer(Walker):
    """Divides the data by learning progress. Progress is the change of a slice's rate between stages, in training or else on validation; only what exceeds one standard error counts.

    It is computed from the report's history alone. Without a target, difficulties stay as they are.
    """

    name = "progress-share"
    tier = Tier.SLICE_SUCCESS

    def design(self, report: StageReport, current: BaseModel, knobs: Sequence[Knob]) -> Design:
        slices, records, design = find_slices(knobs), report.records(), Design()
        way = Way(slices, dump(current), report.target, self.range_of)
        progress = {name: learning_progress(records, name, report.objective) for name in way.aims}
        shares = mixed_with_uniform(progress, UNIFORM_PART)
        part = even_pace(report, SETTLED) if way.is_known else 1.0
        seen = signals(report, report.objective, slices)
        told = ", ".join(f"{name}: {value:.3f}" for name, value in progress.items())
        way.turn_shares(
            design, shares, shares_ahead(part, seen.there()), f"learning progress over {len(records)} stages: {told}"
        )
        if way.is_known:
            for slice_ in with_beside(slices, knobs):
                way.turn_dials(design, slice_, part, f"evenly towards the target, {part:.0%} of the way")
        return design


def learning_progress(records: Sequence[StageRecord], name: str, objective: str) -> float:
    """Smoothed size of the changes of a slice's rate from stage to stage, each less its standard error."""
    seen = [
        (rate, result.episodes)
        for record in records
        for result in read_first(record, objective)
        if result.name == name and (rate := result.rate(objective)) is not None
    ]
    progress = 0.0
    for (before, n_before), (after, n_after) in pairwise(seen):
        error = math.sqrt(variance(before, n_before) + variance(after, n_after))
        change = max(abs(after - before) - error, 0.0)
        progress = SMOOTHING * change + (1 - SMOOTHING) * progress
    return progress
