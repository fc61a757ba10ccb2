"""``bandit``: slices as arms, learning progress as reward (Teacher–Student curriculum learning). Other knobs stay."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from pydantic import BaseModel

from engineers.guard import Feasible
from engineers.knobs import Knob
from engineers.plain.base import Design, PlainEngineer
from engineers.plain.learnability import mixed_with_uniform
from engineers.report import StageRecord, StageReport
from engineers.roles import find_slices

UNIFORM_PART = 0.3  # exploration
SMOOTHING = 0.5  # weight of the newest change; older ones fade


class BanditEngineer(PlainEngineer):
    """Progress is the change of a slice's validation rate between stages, up or down (forgetting asks for practice, too).

    Only what exceeds one standard error counts. Read from the report's history alone; with one stage all shares are equal.
    """

    name = "bandit"

    def design(self, report: StageReport, current: BaseModel, knobs: Sequence[Knob]) -> Design:
        slices, records = find_slices(knobs), report.records()
        design = Design()
        progress = {piece.name: learning_progress(records, piece.name, report.objective) for piece in slices}
        shares = mixed_with_uniform(progress, UNIFORM_PART)
        for piece in slices:
            reason = f"learning progress {progress[piece.name]:.3f} over {len(records)} stages"
            design.turn(piece.share, piece.share.fit(shares[piece.name]), reason)
        return design


def learning_progress(records: Sequence[StageRecord], name: str, objective: str) -> float:
    """Smoothed size of the changes of a slice's rate from stage to stage, each less its standard error."""
    seen = [
        (result.metrics[objective], result.episodes)
        for record in records
        for result in record.results
        if result.name == name and result.episodes and objective in result.metrics
    ]
    progress = 0.0
    for (before, n_before), (after, n_after) in pairwise(seen):
        error = math.sqrt(_variance(before, n_before) + _variance(after, n_after))
        change = max(abs(after - before) - error, 0.0)
        progress = SMOOTHING * change + (1 - SMOOTHING) * progress
    return progress


def _variance(rate: float, n: int) -> float:
    """Of a rate over n episodes, with one success and one failure added: never 0, even where none or all succeeded."""
    smoothed = (rate * n + 1) / (n + 2)
    return smoothed * (1 - smoothed) / n


def make(_model: str = "", *, feasible: Feasible | None = None, max_drop: float | None = None) -> BanditEngineer:
    return BanditEngineer(feasible=feasible, max_drop=max_drop)
