"""``failure-share``: the target's slices share the data by how often they fail, above a floor. It reads success for each slice, no more.

A thermometer: what an engineer is worth beyond it comes from more than asking where success is low. It gives the most to what can
never be learnt. Difficulties stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from engineers.from_file import PLAIN, reads
from engineers.guard import NO_GUARD, Guard
from engineers.knobs import Knob, dump
from engineers.plain.base import Design, PlainEngineer
from engineers.plain.half_success import mixed_with_uniform
from engineers.plain.signals import signals
from engineers.plain.way import Way
from engineers.report import StageReport
from engineers.roles import find_slices, share_of
from engineers.space import Space
from engineers.tiers import Tier


class FailureShareEngineer(PlainEngineer):
    """``floor`` is the part of the data that all slices of the target get alike."""

    name = "failure-share"
    tier = Tier.SLICE_SUCCESS
    turns = "the shares of two slices or more"

    def __init__(self, *, floor: float = 0.2, **options: Any) -> None:
        super().__init__(**options)
        if not 0 <= floor <= 1:
            raise ValueError(f"floor={floor}: give the part of the data that is shared out evenly, from 0 to 1")
        self.floor = floor

    def can_turn(self, knobs: Sequence[Knob]) -> bool:
        return len(find_slices(knobs)) > 1

    def design(self, report: StageReport, current: BaseModel, knobs: Sequence[Knob]) -> Design:
        slices, design = find_slices(knobs), Design()
        seen = signals(report, report.objective, slices)
        rates = seen.validated or seen.trained
        if rates is None:
            return design
        names = Way(slices, dump(current), report.target, self.range_of).aims([slice_.name for slice_ in slices])
        parts = mixed_with_uniform({name: 1.0 - rates[name] for name in names}, self.floor)
        for slice_ in slices:
            if slice_.share is not None:
                part, fails = parts.get(slice_.name, 0.0), 1.0 - rates[slice_.name]
                design.turn(slice_.share, share_of(slice_.share, part), f"fails {fails:.0%} of the time")
        return design


@reads({"floor": PLAIN})
def make(
    _model: str = "",
    *,
    floor: float = 0.2,
    space: Space | None = None,
    guard: Guard = NO_GUARD,
) -> FailureShareEngineer:
    return FailureShareEngineer(floor=floor, space=space, guard=guard)
