"""``schedule`` and ``ladder``: go to the target by a list written beforehand, and ignore every result. A hand-made ladder in one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from engineers.from_file import PLAIN, reads
from engineers.knobs import Knob, dump, find_knobs, validated
from engineers.plain.base import Design
from engineers.plain.way import Walker, Way, shares_ahead
from engineers.report import StageReport
from engineers.roles import find_slices, with_beside
from engineers.tiers import Tier


@reads({"parts": PLAIN})
class ScheduleEngineer(Walker):
    """Moves to the target in steps that are listed before the run. After stage i it has moved ``parts[i]`` of the way from the first stage's config to the target; after the last, all.

    Without a target, it proposes the current config.
    """

    name = "schedule"
    tier = Tier.FAMILY

    def __init__(self, *, parts: Sequence[float] = (), **options: Any) -> None:
        super().__init__(**options)
        if any(not 0 <= part <= 1 for part in parts):
            raise ValueError(f"parts={list(parts)}: give fractions of the way, each from 0 to 1")
        self.parts = tuple(parts)

    def design(self, report: StageReport, current: BaseModel, knobs: Sequence[Knob]) -> Design:
        design, turned = Design(), {knob.path for knob in knobs}
        first = validated(type(current), report.records()[0].config)
        of_first = [knob for knob in find_knobs(first, ("*",)) if knob.path in turned]
        slices = find_slices(of_first)
        way = Way(slices, dump(first), report.target, self.range_of)
        if way.wanted is None:
            return design
        fraction = self.parts[report.stage] if report.stage < len(self.parts) else 1.0
        why = f"{fraction:.0%} of the way, as written"
        way.turn_shares(design, way.wanted, shares_ahead(fraction, 0.0), why)
        for slice_ in with_beside(slices, of_first):
            way.turn_dials(design, slice_, fraction, why)
        return design


class LadderEngineer(ScheduleEngineer):
    """Moves to the target in three steps, unless others are listed."""

    name = "ladder"

    def __init__(self, *, parts: Sequence[float] = (0.4, 0.7), **options: Any) -> None:
        super().__init__(parts=parts, **options)
