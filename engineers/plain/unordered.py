"""An engineer with a rule of its own for slices without an order. It moves everything else as ``rules`` does."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import BaseModel

from engineers.knobs import Knob, dump, find_knobs, get_or_none
from engineers.plain.base import Design
from engineers.plain.rules import RulesEngineer
from engineers.plain.signals import signals
from engineers.plain.way import Way
from engineers.report import StageRecord, StageReport
from engineers.roles import SliceKnobs, are_ordered, find_slices, with_beside

Parts = dict[str, float]  # of the data, by slice
Reasons = dict[str, str]


class UnorderedEngineer(RulesEngineer):
    """Divides the data among the target's slices by ``divided``, if two or more have shares and no order is declared.

    Difficulties move towards the target as in ``rules``, but each by the success of its own slice: without an order, another slice says
    little of it. A rate from few episodes is shrunk towards the success at which difficulties stay as they are.
    """

    @abstractmethod
    def divided(
        self, report: StageReport, current: BaseModel, slices: Sequence[SliceKnobs], weights: Mapping[str, float]
    ) -> tuple[Parts, Reasons]:
        """The parts of these slices, which have these weights in the target, and why."""

    def design(self, report: StageReport, current: BaseModel, knobs: Sequence[Knob]) -> Design:
        slices = [piece for piece in find_slices(knobs) if piece.share is not None]
        if len(slices) < 2 or are_ordered(slices):
            return super().design(report, current, knobs)
        design, seen = Design(), signals(report, report.objective, slices, towards=self.thresholds.alive)
        if seen.here is None:
            return design
        way = Way(slices, dump(current), report.target, self.range_of)
        aims = [piece for piece in slices if piece.name in way.aims]
        design.share_out(slices, *self.divided(report, current, aims, way.weights))
        if way.is_known:
            beside = with_beside(slices, knobs)[len(slices) :]
            for piece in (*aims, *beside):
                way.turn_dials(design, piece, *self.step(report, seen, way, piece.name))
        return design


def whole_slices(config: BaseModel) -> dict[str, SliceKnobs]:
    """All slices of a config by name, each with every difficulty that holds for it: its own, and those beside the slices."""
    knobs = find_knobs(config, ("*",))
    slices = find_slices(knobs)
    beside = [knob for piece in with_beside(slices, knobs)[len(slices) :] for knob in piece.difficulties]
    return {piece.name: replace(piece, difficulties=(*piece.difficulties, *beside)) for piece in slices}


def as_hard(record: StageRecord, piece: SliceKnobs, config: Mapping[str, object]) -> bool:
    """Whether the stage's slice had the difficulties that it has in this config."""
    return all(get_or_none(record.config, one.path) == get_or_none(config, one.path) for one in piece.difficulties)
