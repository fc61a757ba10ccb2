"""Engineers whose configs are fixed before training begins: they know the target and read no results. What reading is worth is the gain over
the best of them.

A run asks for such configs before its first stage (``ahead``). So they may be any configs, that of the first stage included, which no
report precedes. Everywhere else these engineers are asked after each stage, like all others, and write what is editable.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from pydantic import BaseModel

from engineers.knobs import Knob, KnobError, dump, find_knobs, leaves, validated, with_values
from engineers.plain.base import Design, KnobPath, PlainEngineer
from engineers.plain.uniform import UniformEngineer
from engineers.report import StageReport
from engineers.roles import SliceKnobs, role_of, share_of, shares_of, slices_in
from engineers.tiers import Tier


@dataclass(frozen=True)
class Ahead:
    """The configs of a run, written before it begins."""

    first: BaseModel | None = None  # of the first stage; None: as it is
    later: BaseModel | None = None  # of every later stage; None: the engineer is asked
    editable: tuple[str, ...] | None = None  # the knobs that it may then change; None: as before


class OpenLoopEngineer(PlainEngineer):
    """Reads the report's target, and nothing else of it."""

    tier = Tier.TARGET
    warms_up = False  # whether an easier stage comes before the target
    turns = "any knob that the target has"

    def can_turn(self, knobs: Sequence[Knob]) -> bool:
        return bool(knobs)

    @staticmethod
    @abstractmethod
    def ahead(first: BaseModel, target: BaseModel, editable: Sequence[str] | None) -> Ahead:
        """The configs of a run with this first stage. Raises ``KnobError``."""


class TargetOnlyEngineer(OpenLoopEngineer):
    """Every stage trains on the target."""

    name = "target-only"

    @staticmethod
    def ahead(first: BaseModel, target: BaseModel, editable: Sequence[str] | None) -> Ahead:
        return Ahead(target, target)

    def design(self, report: StageReport, current: BaseModel, knobs: Sequence[Knob]) -> Design:
        design, there = Design(), leaves(report.target)
        if not any(knob.name in there for knob in knobs):  # no target, or one that has none of the config's knobs
            return design
        for knob in knobs:
            if knob.name in there:
                design.turn(knob, there[knob.name], "as in the target")
            elif role_of(knob) == "share":
                design.turn(knob, share_of(knob, 0.0), "the target does not have it")
        return design


class WarmTargetEngineer(TargetOnlyEngineer):
    """The first stage as it is, then the target."""

    name = "warm-target"
    warms_up = True

    @staticmethod
    def ahead(first: BaseModel, target: BaseModel, editable: Sequence[str] | None) -> Ahead:
        return Ahead(later=target)


class MixtureEngineer(OpenLoopEngineer):
    """Half of the data as in the first stage on the slices that the target lacks, half on the target."""

    name = "mixture"
    warms_up = True

    @staticmethod
    def ahead(first: BaseModel, target: BaseModel, editable: Sequence[str] | None) -> Ahead:
        mixed = with_values(first, half_easy(first, target))
        return Ahead(mixed, mixed)

    def design(self, report: StageReport, current: BaseModel, knobs: Sequence[Knob]) -> Design:
        design = Design()
        if not report.target:
            return design
        first = validated(type(current), report.records()[0].config)
        values = half_easy(first, validated(type(current), report.target))
        for knob in knobs:
            if knob.path in values:
                design.turn(knob, values[knob.path], "half of the data as in the first stage, half as in the target")
        return design


class NearUniformEngineer(UniformEngineer, OpenLoopEngineer):
    """The draws of ``uniform``, but no data for slices that are harder than the target's hardest one."""

    name = "near-uniform"
    tier = Tier.TARGET
    turns = UniformEngineer.turns

    @staticmethod
    def ahead(first: BaseModel, target: BaseModel, editable: Sequence[str] | None) -> Ahead:
        slices, there = slices_in(first), dump(target)
        if not any(shares_of(there, slices).values()):
            raise KnobError("near-uniform: the first stage has none of the target's slices")
        beyond = _beyond(slices, there)
        closed = {piece.share.path: share_of(piece.share, 0.0) for piece in beyond if piece.share}
        names = tuple(knob.name for knob in find_knobs(first, editable) if not _is_in(knob, beyond))
        return Ahead(with_values(first, closed), editable=names)

    def design(self, report: StageReport, current: BaseModel, knobs: Sequence[Knob]) -> Design:
        beyond = _beyond(slices_in(current), report.target)
        design = super().design(report, current, [knob for knob in knobs if not _is_in(knob, beyond)])
        for piece in beyond:
            if piece.share is not None and piece.share in knobs:
                design.turn(piece.share, share_of(piece.share, 0.0), "beyond the target's hardest slice")
        return design

    def random(self, report: StageReport) -> Random:
        """Seeded as for ``uniform``, so that the two differ only in the slices that are closed."""
        return Random(f"{UniformEngineer.name}:{self.seed}:{report.stage}")


OPEN_LOOP: dict[str, type[OpenLoopEngineer]] = {
    kind.name: kind for kind in (TargetOnlyEngineer, WarmTargetEngineer, MixtureEngineer, NearUniformEngineer)
}


def half_easy(first: BaseModel, target: BaseModel) -> dict[KnobPath, Any]:
    """The values of a config with half of the data on the first stage's slices that the target lacks, at their settings there; half on
    the target.

    Raises ``KnobError`` if the first stage has no such slice, or lacks one of the target's.
    """
    slices, there = slices_in(first), leaves(dump(target))
    ours, theirs = shares_of(dump(first), slices), shares_of(dump(target), slices_in(target))
    easy = {name: share for name, share in ours.items() if share > 0 and theirs.get(name, 0.0) == 0}
    wanted = {name: share for name, share in theirs.items() if share > 0}
    if not easy or wanted.keys() - ours.keys():
        raise KnobError(
            "mixture needs a first stage with all slices of the target and others besides: the first stage has "
            f"{', '.join(name for name, share in ours.items() if share > 0)}, the target {', '.join(wanted)}"
        )
    of_easy = [piece for piece in slices if piece.name not in wanted]
    values = {
        knob.path: there.get(knob.name, knob.value) for knob in find_knobs(first, ("*",)) if not _is_in(knob, of_easy)
    }
    for piece in slices:
        if piece.share is not None:
            part = easy.get(piece.name, 0.0) / sum(easy.values()) + wanted.get(piece.name, 0.0) / sum(wanted.values())
            values[piece.share.path] = share_of(piece.share, part / 2)
    return values


def _beyond(slices: Sequence[SliceKnobs], target: Mapping[str, Any]) -> list[SliceKnobs]:
    """The slices after the last one that the target uses, in their natural order."""
    weights = shares_of(target, slices)
    used = [place for place, piece in enumerate(slices) if weights[piece.name] > 0]
    return list(slices[used[-1] + 1 :]) if used else []


def _is_in(knob: Knob, slices: Sequence[SliceKnobs]) -> bool:
    groups = [piece.share.group for piece in slices if piece.share is not None]
    return any(knob.path[: len(group)] == group for group in groups)
