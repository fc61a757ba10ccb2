"""Engineers that divide the data by the success of each slice alone: ``failure-share``, ``give-up``, ``learning-progress``, ``learnability``.

They are baselines for engineers that read more.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from engineers.from_file import PLAIN, reads
from engineers.knobs import Knob, dump
from engineers.plain.base import Design, PlainEngineer
from engineers.plain.shares import checked_floor, mixed_with_uniform
from engineers.plain.signals import rates
from engineers.plain.way import Way
from engineers.report import StageReport, read_first
from engineers.roles import find_slices
from engineers.tiers import Tier

Array = NDArray[np.float64]
RatesByStage = Sequence[Array]  # success of each slice after every stage so far, oldest first


class ShareRule(PlainEngineer):
    """Divides the data by each slice's results; difficulties stay."""

    turns = "the shares of two slices or more"

    def can_turn(self, knobs: Sequence[Knob]) -> bool:
        return len(find_slices(knobs)) > 1


@reads({"floor": PLAIN})
class ShareEngineer(ShareRule):
    """``floor`` is the part of the data that all slices of the target get alike. Difficulties stay."""

    tier = Tier.SLICE_SUCCESS

    def __init__(self, *, floor: float = 0.2, **options: Any) -> None:
        super().__init__(**options)
        self.floor = checked_floor(floor)

    @staticmethod
    @abstractmethod
    def weights(rates: RatesByStage) -> Array:
        """The weight of each slice."""

    def rates(self, report: StageReport, names: Sequence[str]) -> RatesByStage:
        """Success of these slices after every stage in which any of them was measured."""
        return rates_by_stage(report, names)

    def design(self, report: StageReport, current: BaseModel, knobs: Sequence[Knob]) -> Design:
        slices, design = find_slices(knobs), Design()
        names = Way(slices, dump(current), report.target, self.range_of).aims
        rates = self.rates(report, names)
        if not rates:
            return design
        weights = self.weights(rates)
        parts = mixed_with_uniform(dict(zip(names, weights.tolist(), strict=True)), self.floor)
        measured = (rates_by_stage(report, names) or rates)[-1].tolist()
        reasons = map(_reason, measured, rates[-1].tolist(), weights.tolist())
        design.share_out(slices, parts, dict(zip(names, reasons, strict=True)))
        return design


class FailureShareEngineer(ShareEngineer):
    """Divides the data by how often a slice fails. It only measures low success, like a thermometer, so it gives the most data to slices that can never be
    learnt. Each rate of the last stage is drawn towards that of all slices, the more the fewer episodes it has.
    """

    name = "failure-share"

    @staticmethod
    def weights(rates: RatesByStage) -> Array:
        return 1 - rates[-1]

    def rates(self, report: StageReport, names: Sequence[str]) -> RatesByStage:
        seen = rates(read_first(report, report.objective), report.objective)
        return [] if seen is None else [np.array([seen[name] for name in names])]


class GiveUpEngineer(ShareEngineer):
    """Divides the data by failures, but without data for slices that never succeed and have not moved for two stages."""

    name = "give-up"

    @staticmethod
    def weights(rates: RatesByStage) -> Array:
        stuck = (rates[-1] < 0.05) & (len(rates) > 2) & (np.abs(rates[-1] - rates[max(len(rates) - 3, 0)]) < 0.05)
        return np.where(stuck, 0.0, 1 - rates[-1])


class LearningProgressEngineer(ShareEngineer):
    """Divides the data as a teacher-student curriculum: by the size of the last changes, older ones fading."""

    name = "learning-progress"

    @staticmethod
    def weights(rates: RatesByStage) -> Array:
        found = np.zeros_like(rates[0])
        for before, after in pairwise(rates):
            found = 0.5 * found + 0.5 * np.abs(after - before)
        return found


class LearnabilityEngineer(ShareEngineer):
    """Divides the data by learnability, p(1 - p)."""

    name = "learnability"

    @staticmethod
    def weights(rates: RatesByStage) -> Array:
        return rates[-1] * (1 - rates[-1])


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
