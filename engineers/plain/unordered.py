"""An engineer with a rule of its own for slices without an order. It moves everything else as ``rules`` does."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from pydantic import BaseModel

from engineers.knobs import Knob, dump, get_or_none
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

    Difficulties move towards the target as in ``rules``.
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
        design, seen = Design(), signals(report, report.objective, slices)
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


def drawn_as_target(record: StageRecord, piece: SliceKnobs, target: Mapping[str, object]) -> bool:
    """Whether the stage's slice had the target's difficulties."""
    return all(get_or_none(record.config, one.path) == get_or_none(target, one.path) for one in piece.difficulties)
