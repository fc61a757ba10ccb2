"""Engineers that divide the data by a rule of ``share_rules``: ``give-up``, ``learning-progress`` and ``learnability``.

They read only success for each slice. ``failure-share`` is the fourth, with its rates drawn towards the mean of all slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import BaseModel

from engineers.from_file import PLAIN, reads
from engineers.knobs import Knob, dump
from engineers.plain.base import Design, PlainEngineer
from engineers.plain.share_rules import RULES, Array, RatesByStage
from engineers.plain.shares import checked_floor, mixed_with_uniform
from engineers.plain.way import Way
from engineers.report import StageReport, read_first
from engineers.roles import find_slices
from engineers.tiers import Tier


class ShareRule(PlainEngineer):
    """Divides the data by each slice's results; difficulties stay."""

    turns = "the shares of two slices or more"

    def can_turn(self, knobs: Sequence[Knob]) -> bool:
        return len(find_slices(knobs)) > 1


@reads({"floor": PLAIN})
class ShareEngineer(ShareRule):
    """``floor`` is the part of the data that all slices of the target get alike. Difficulties stay."""

    tier = Tier.SLICE_SUCCESS
    rule: str  # in ``RULES``

    def __init__(self, *, floor: float = 0.2, **options: Any) -> None:
        super().__init__(**options)
        self.floor = checked_floor(floor)

    def rates(self, report: StageReport, names: Sequence[str]) -> RatesByStage:
        """Success of these slices after every stage in which any of them was measured."""
        return rates_by_stage(report, names)

    def design(self, report: StageReport, current: BaseModel, knobs: Sequence[Knob]) -> Design:
        slices, design = find_slices(knobs), Design()
        names = Way(slices, dump(current), report.target, self.range_of).aims
        rates = self.rates(report, names)
        if not rates:
            return design
        weights = RULES[self.rule](rates)
        parts = mixed_with_uniform(dict(zip(names, weights.tolist(), strict=True)), self.floor)
        measured = (rates_by_stage(report, names) or rates)[-1].tolist()
        reasons = map(_reason, measured, rates[-1].tolist(), weights.tolist())
        design.share_out(slices, parts, dict(zip(names, reasons, strict=True)))
        return design


class GiveUpEngineer(ShareEngineer):
    name = "give-up"
    rule = "give-up"


class LearningProgressEngineer(ShareEngineer):
    name = "learning-progress"
    rule = "progress"


class LearnabilityEngineer(ShareEngineer):
    name = "learnability"
    rule = "learnable"


def _reason(measured: float, estimated: float, weight: float) -> str:
    """Names the measured rate, which a reader finds in the report, and the estimate if the rule uses another rate."""
    shown, used = f"{measured:.2f}", f"{estimated:.2f}"
    return f"success {shown}{'' if used == shown else f', estimated as {used}'}, weight {weight:.3f}"


def rates_by_stage(report: StageReport, names: Sequence[str]) -> list[Array]:
    """The measured rates; a slice that a stage did not measure has its last rate, or else the mean of the others."""
    found: list[Array] = []
    for record in report.records():
        known = {
            row.name: rate
            for row in read_first(record, report.objective)
            if (rate := row.rate(report.objective)) is not None
        }
        if here := [known[name] for name in names if name in known]:
            unknown = found[-1] if found else np.full(len(names), float(np.mean(here)))
            found.append(np.array([known.get(name, last) for name, last in zip(names, unknown.tolist(), strict=True)]))
    return found
