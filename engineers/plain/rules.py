"""``rules``: the strong baseline without a model. A hand-written engineer that reads rates and turns knobs.

It keeps what works, moves share to the slices near the frontier, opens a harder knob where training is mastered and the
target is not (one at a time, the least opened), eases all where the signal dies, and takes back what made a slice worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from engineers.guard import Feasible
from engineers.knobs import Knob, dump
from engineers.plain.base import Design, PlainEngineer, Space
from engineers.plain.signals import Reading, readings
from engineers.report import SliceResult, StageRecord, StageReport
from engineers.roles import SliceKnobs, find_slices, shares_of


@dataclass(frozen=True)
class Thresholds:
    """When a slice counts as mastered or dead, and how far one stage's step goes."""

    mastered: float = 0.75  # success rate from which harder knobs are opened
    dead: float = 0.08  # success rate below which there is next to nothing to learn from
    headroom: float = 0.05  # a target at most this much below training is no reason to open harder knobs
    opening: float = 0.15  # of a knob's range, upwards
    easing: float = 0.25  # of a knob's range, downwards
    inertia: float = 0.4  # part of the old share that stays: what works is changed slowly
    practice: float = 0.03  # least share of a slice that was ever alive: against forgetting


class RulesEngineer(PlainEngineer):
    """Generic over configs that have slices with shares (see ``engineers.roles``); other configs, and nulls, stay."""

    name = "rules"

    def __init__(self, *, thresholds: Thresholds | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.thresholds = thresholds or Thresholds()

    def design(self, report: StageReport, current: BaseModel, knobs: Sequence[Knob]) -> Design:
        slices = find_slices(knobs)
        seen = readings(report)
        design = Design()
        self._turn_shares(design, slices, seen, shares_of(dump(current), slices))
        for piece in slices:
            self._turn_difficulties(design, piece, seen.get(piece.name, Reading()), report)
        return design

    # Shares

    def _turn_shares(
        self, design: Design, slices: Sequence[SliceKnobs], seen: dict[str, Reading], old: dict[str, float]
    ) -> None:
        wanted, reasons = self._wanted_shares(slices, seen)
        total = sum(wanted.values())
        if total <= 0:
            return
        keep = self.thresholds.inertia if sum(old.values()) > 0 else 0.0
        for piece in slices:
            share = keep * old[piece.name] + (1 - keep) * wanted[piece.name] / total
            design.turn(piece.share, piece.share.fit(share), reasons[piece.name])

    def _wanted_shares(
        self, slices: Sequence[SliceKnobs], seen: dict[str, Reading]
    ) -> tuple[dict[str, float], dict[str, str]]:
        """Weights by learnability; a slice without signal gets some once the one before it is alive."""
        limits = self.thresholds
        wanted: dict[str, float] = {}
        reasons: dict[str, str] = {}
        before_is_alive = True  # the easiest slice is always worth a try
        for rank, piece in enumerate(slices):
            reading = seen.get(piece.name, Reading())
            alive = max(reading.rate, reading.goal) > limits.dead
            if alive:
                weight = max(4 * reading.learnability, limits.practice)
                mastered = min(reading.rate, reading.goal) >= limits.mastered
                where = "mastered, kept in practice" if mastered else "near the frontier"
                why = f"success {reading.rate:.2f} in training, {reading.goal:.2f} on the target: {where}"
            elif before_is_alive:
                weight, why = 0.5, "no signal yet, but the slice before it is alive: next to be opened"
            else:
                weight, why = 0.05 * 0.5**rank, "no signal, nor in the slice before it: not yet"
            wanted[piece.name], reasons[piece.name] = weight, why
            before_is_alive = alive
        return wanted, reasons

    # Difficulties

    def _turn_difficulties(self, design: Design, piece: SliceKnobs, reading: Reading, report: StageReport) -> None:
        """Take back, else ease all, else open one: the signal matters at once, harder settings can wait."""
        dials = [
            _Dial(knob, *bounds)
            for knob in piece.difficulties
            if knob.value is not None and (bounds := self.range_of(knob)) is not None
        ]
        if self._take_back(design, piece, dials, reading, report):
            return
        if reading.rate <= self.thresholds.dead:
            for dial in dials:
                if dial.turned > 0:
                    said = f"success {reading.rate:.2f}: too hard to learn from, eased"
                    design.turn(dial.knob, dial.at(dial.turned - self.thresholds.easing), said)
        elif dials and self._may_open(reading):
            least = min(dials, key=lambda dial: dial.turned)
            if least.turned < 1:
                said = f"success {reading.rate:.2f} in training: mastered, made harder"
                design.turn(least.knob, least.at(least.turned + self.thresholds.opening), said)

    def _take_back(
        self, design: Design, piece: SliceKnobs, dials: Sequence[_Dial], reading: Reading, report: StageReport
    ) -> bool:
        """Whether a knob was opened since this slice did clearly better; such knobs go back to where they were."""
        better = _clearly_better_before(report, piece.name)
        if better is None:
            return False
        record, rate = better
        taken_back = False
        for dial in dials:
            earlier = _earlier_value(record, dial.knob)
            if earlier is not None and earlier < dial.value:
                said = f"{rate:.2f} at stage {record.stage} with {earlier:g}, {reading.goal:.2f} now: taken back"
                design.turn(dial.knob, dial.knob.fit(earlier), said)
                taken_back = True
        return taken_back

    def _may_open(self, reading: Reading) -> bool:
        """Mastered in training, and the target is harder still (or was not measured apart from it)."""
        if reading.rate < self.thresholds.mastered:
            return False
        apart = reading.trained is not None and reading.validated is not None
        return not apart or reading.goal < reading.rate - self.thresholds.headroom


@dataclass(frozen=True)
class _Dial:
    """A difficulty as a dial from 0 (easiest) to 1 (hardest)."""

    knob: Knob
    low: float
    high: float

    @property
    def value(self) -> float:
        return float(self.knob.value)

    @property
    def turned(self) -> float:
        return (self.value - self.low) / (self.high - self.low) if self.high > self.low else 1.0

    def at(self, turned: float) -> float:
        """The knob's value there; the ends are as far as it goes."""
        return self.knob.fit(self.low + min(max(turned, 0.0), 1.0) * (self.high - self.low))


def _clearly_better_before(report: StageReport, name: str) -> tuple[StageRecord, float] | None:
    """The earlier stage in which this slice did best, if its interval lies above the present one."""
    now = _result(report.results, name, report.objective)
    if now is None:
        return None
    past = [(record, _result(record.results, name, report.objective)) for record in report.history]
    measured = [(record, result) for record, result in past if result is not None]
    if not measured:
        return None
    record, best = max(measured, key=lambda pair: pair[1].metrics[report.objective])
    clearly = best.interval(report.objective)[0] > now.interval(report.objective)[1]
    return (record, best.metrics[report.objective]) if clearly else None


def _result(results: Sequence[SliceResult], name: str, objective: str) -> SliceResult | None:
    return next((r for r in results if r.name == name and r.episodes and objective in r.metrics), None)


def _earlier_value(record: StageRecord, knob: Knob) -> float | None:
    value: Any = record.config
    for key in knob.path:
        value = value.get(key) if isinstance(value, dict) else None
    return float(value) if isinstance(value, int | float) else None


def make(
    _model: str = "",
    *,
    space: Space | None = None,
    feasible: Feasible | None = None,
    max_drop: float | None = None,
    thresholds: Thresholds | None = None,
) -> RulesEngineer:
    return RulesEngineer(space=space, feasible=feasible, max_drop=max_drop, thresholds=thresholds)
