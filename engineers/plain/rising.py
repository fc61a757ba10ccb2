"""``rising`` and ``once``: the simplest rules that read what training shows.

``rising`` gives the data to slices whose score has left that of a blind guess: these are being learnt. ``once`` reads the first stage and no
other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from engineers.from_file import PLAIN, reads
from engineers.knobs import Knob
from engineers.plain.base import Design
from engineers.plain.share_engineers import ShareRule
from engineers.report import SliceResult, StageRecord, StageReport, read_first
from engineers.roles import find_slices, natural_key
from engineers.tiers import Tier


@reads({"learnt": PLAIN, "keep": PLAIN, "margin": PLAIN, "patience": PLAIN, "flat": PLAIN})
class RisingEngineer(ShareRule):
    """``learnt`` is the success from which a slice is only rehearsed, with a part ``keep`` of the data for all of these. A slice
    rises if its score is ``margin`` above a blind guess and still grows, or for the first ``patience`` stages; a part ``flat`` of the
    data goes to those that do not."""

    name = "rising"
    tier = Tier.REPORT

    def __init__(
        self,
        *,
        learnt: float = 0.8,
        keep: float = 0.3,
        margin: float = 0.1,
        patience: int = 2,
        flat: float = 0.1,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.learnt, self.keep, self.margin, self.patience, self.flat = learnt, keep, margin, patience, flat

    def design(self, report: StageReport, current: BaseModel, knobs: Sequence[Knob]) -> Design:
        slices, design = find_slices(knobs), Design()
        stages = [results(record, report) for record in report.records()]
        kinds = {piece.name: self.kind(piece.name, stages, report) for piece in slices}
        design.share_out(slices, shared(kinds, {"learnt": self.keep, "flat": self.flat}), kinds)
        return design

    def kind(self, name: str, stages: Sequence[Mapping[str, SliceResult]], report: StageReport) -> str:
        """``learnt``, ``rising`` or ``flat``, by the last stages that had data of the slice."""
        seen = [stage[name] for stage in stages if name in stage]
        if not seen:
            return "rising"
        success, scores = seen[-1].rate(report.objective) or 0.0, [score_of(row, report) for row in seen]
        if success >= self.learnt:
            return "learnt"
        if len(scores) < self.patience:
            return "rising"
        stuck = len(scores) > 2 and success == 0 and scores[-1] < scores[-3] + self.margin
        return "rising" if scores[-1] >= report.blind_scores.get(name, 0.0) + self.margin and not stuck else "flat"


@reads({"learnt": PLAIN, "keep": PLAIN, "part": PLAIN})
class OnceEngineer(ShareRule):
    """Slices with a success of ``learnt`` in the first stage keep a part ``keep`` of the data; ``part`` of the others, the first by
    name, gets the rest to the end."""

    name = "once"
    tier = Tier.SLICE_SUCCESS

    def __init__(self, *, learnt: float = 0.35, keep: float = 0.2, part: float = 0.5, **options: Any) -> None:
        super().__init__(**options)
        self.learnt, self.keep, self.part = learnt, keep, part

    def design(self, report: StageReport, current: BaseModel, knobs: Sequence[Knob]) -> Design:
        slices, design = find_slices(knobs), Design()
        first = results(report.records()[0], report)
        known = {name for name, row in first.items() if (row.rate(report.objective) or 0.0) >= self.learnt}
        others = sorted((piece.name for piece in slices if piece.name not in known), key=natural_key)
        chosen = set(others[: max(1, round(self.part * len(others)))])
        kinds = {
            piece.name: "learnt" if piece.name in known else "rising" if piece.name in chosen else "flat"
            for piece in slices
        }
        design.share_out(slices, shared(kinds, {"learnt": self.keep, "flat": 0.0}), kinds)
        return design


def results(record: StageRecord, report: StageReport) -> dict[str, SliceResult]:
    """What the last half of a stage showed of each slice."""
    return {row.name: row for row in read_first(record, report.objective) if row.episodes}


def score_of(row: SliceResult, report: StageReport) -> float:
    """The mean score; where there is none, success."""
    return row.score if row.score is not None else row.rate(report.objective) or 0.0


def shared(kinds: Mapping[str, str], parts: Mapping[str, float]) -> dict[str, float]:
    """Each kind's part of the data in even shares; the rising slices, or else the flat ones, get what is left."""
    counts = {kind: sum(other == kind for other in kinds.values()) for kind in ("learnt", "rising", "flat")}
    given = {kind: parts.get(kind, 0.0) if count else 0.0 for kind, count in counts.items()}
    rest = next((kind for kind in ("rising", "flat", "learnt") if counts[kind]), "learnt")
    given[rest] = 1.0 - sum(part for kind, part in given.items() if kind != rest)
    return {name: given[kind] / counts[kind] for name, kind in kinds.items()}
