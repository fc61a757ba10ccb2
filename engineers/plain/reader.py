"""``reader``: divides the data so that the target gains most, as far as this run's own counts tell.

If slices have no order, ``engineers.plain.growth`` estimates the growth of each from all stages so far. Then it divides the data of
the remaining stages. Step by step, it gives data to the slice and the dose with the largest expected gain on the target for that data.
So a mastered slice gets just enough to keep it, and a slice that does not improve gets no more. If an order is declared, data moves as in
``rules``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import BaseModel

from engineers.from_file import DATA, PLAIN, reads
from engineers.knobs import find_knobs, get_or_none
from engineers.plain.growth import Array, Belief, Evidence, Mask, believed
from engineers.plain.shares import checked_floor
from engineers.plain.signals import standings_of
from engineers.plain.unordered import Parts, Reasons, UnorderedEngineer, as_hard, whole_slices
from engineers.report import SliceResult, StageRecord, StageReport, trained_on
from engineers.roles import SliceKnobs
from engineers.tiers import Tier

DOSES = (0, 0.125, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 11, 16, 24, 32)  # in even shares
FLOOR = 0.3  # of the data: even draws lose little where every slice can be learnt
BEGUN = 0.1  # part of the way from a blind guess to right answers, by the score: such a slice can be learnt
LEAST_GAIN = 1e-5  # success on the target for an even share of data: less is left to all slices alike
DIGITS = 9  # precision of comparisons between gains, so that the order of additions does not matter


@reads({"floor": PLAIN, "thresholds": DATA})
class ReaderEngineer(UnorderedEngineer):
    """Gives data where the target should gain most, by estimates of how each slice learns. ``floor`` is the part of the data that all slices of the target get alike; ``thresholds`` are those of ``rules``, and
    matter only if slices have an order."""

    name = "reader"
    tier = Tier.REPORT

    def __init__(self, *, floor: float = FLOOR, **options: Any) -> None:
        super().__init__(**options)
        self.floor = checked_floor(floor)

    def divided(
        self, report: StageReport, current: BaseModel, slices: Sequence[SliceKnobs], weights: Mapping[str, float]
    ) -> tuple[Parts, Reasons]:
        place = {knob.path: index for index, knob in enumerate(find_knobs(current, ("*",)))}
        slices = sorted(slices, key=lambda piece: place[piece.share.path] if piece.share else 0)
        names = [piece.name for piece in slices]
        belief = believed(evidence_of(report, current, slices), len(report.records()) + stages_left(report))
        plan = planned(belief, np.array([weights[name] for name in names]), stages_left(report), self.floor)
        return dict(zip(names, plan.parts.tolist(), strict=True)), dict(zip(names, plan.reasons(), strict=True))


@dataclass(frozen=True)
class Plan:
    """Doses for every remaining stage, in even shares, and their expected results. All are [slices]."""

    doses: Array
    now: Array
    end: Array
    without: Array  # the end without data
    hopeless: Array

    @property
    def parts(self) -> Array:
        return self.doses / self.doses.sum()

    def reasons(self) -> list[str]:
        numbers = zip(self.now, self.doses, self.end, self.without, self.hopeless, strict=True)
        return [
            f"estimated success {now:.2f}; {dose:.2g} even shares a stage should end it at {end:.2f}, no data at {without:.2f}; "
            f"never learnt: {hopeless:.0%}"
            for now, dose, end, without, hopeless in numbers
        ]


def planned(belief: Belief, weights: Array, left: int, floor: float) -> Plan:
    """The doses by which the target is expected to gain most, found step by step, above a floor."""
    count = len(weights)
    menu = np.array([dose for dose in DOSES if dose <= count])
    ends = belief.ends(menu, left)
    at = _shared_out(np.round(weights[:, None] * ends, DIGITS), menu, count * (1 - floor))
    doses = menu[at]
    doses = doses + (count - doses.sum()) / count
    last = belief.ends(doses, left).diagonal()
    return Plan(doses, belief.now(), last, ends[:, 0], belief.hopeless())


def _shared_out(gains: Array, menu: Array, data: float) -> Any:
    """For each slice an entry of the menu: repeatedly takes the increase that gains most for its data, until the data is used up."""
    at = np.zeros(len(gains), dtype=int)
    rows = np.arange(len(gains))
    while True:
        more = menu - menu[at][:, None]
        rise = gains - gains[rows, at][:, None]
        fits = (more > 0) & (more <= data + 1e-9)
        rate = np.round(np.where(fits, rise / np.where(fits, more, 1.0), -1.0), DIGITS)
        row, entry = np.unravel_index(rate.argmax(), rate.shape)
        if rate[row, entry] <= LEAST_GAIN:
            return at
        data -= more[row, entry]
        at[row] = entry


def evidence_of(report: StageReport, current: BaseModel, slices: Sequence[SliceKnobs]) -> Evidence:
    """Doses and counts of these slices after every stage so far."""
    whole = whole_slices(current)
    records = report.records()
    costs = [record.cost.get(report.unit, 0.0) for record in records]
    usual = sum(costs) / len(costs)
    doses, succeeded, played = (np.zeros((len(records), len(slices))) for _ in range(3))
    for stage, record in enumerate(records):
        spent = costs[stage] / usual if min(costs) > 0 and math.isfinite(usual) else 1.0
        total = sum(_share(record, piece) for piece in whole.values())
        for i, piece in enumerate(slices):
            part = _share(record, piece) / total if total > 0 else 0.0
            doses[stage, i] = spent * part * len(slices)
            for table in _tables_of(record, whole[piece.name], report.target):
                won, cases = _counts(table, piece.name, report.objective)
                succeeded[stage, i] += won
                played[stage, i] += cases
    return Evidence(doses, succeeded, played, _begun(report, slices))


def _tables_of(record: StageRecord, piece: SliceKnobs, target: Mapping[str, Any]) -> list[Sequence[SliceResult]]:
    """Where a stage shows the slice's success on the target: in validation, and in training that is drawn as the target is, or is all there is."""
    trained_there = as_hard(record, piece, target) or not record.results
    return [record.results, trained_on(record)] if trained_there else [record.results]


def _begun(report: StageReport, slices: Sequence[SliceKnobs]) -> Mask:
    """[slices]: whether the score of any stage shows that the slice can be learnt."""
    standings = [standings_of(trained_on(record), report.blind_scores) for record in report.records()]
    return np.array([any(stage.get(piece.name, 0.0) >= BEGUN for stage in standings) for piece in slices])


def stages_left(report: StageReport) -> int:
    """Stages left; if unknown, the number of past stages."""
    return max(len(report.records()) if report.rounds_left is None else report.rounds_left, 1)


def _share(record: StageRecord, piece: SliceKnobs) -> float:
    value = get_or_none(record.config, piece.share.path) if piece.share else None
    return max(float(value), 0.0) if isinstance(value, int | float) and math.isfinite(value) else 0.0


def _counts(table: Sequence[SliceResult], name: str, objective: str) -> tuple[float, int]:
    """Successes and episodes."""
    for row in table:
        if row.name == name and (rate := row.rate(objective)) is not None:
            return rate * row.episodes, row.episodes
    return 0.0, 0
