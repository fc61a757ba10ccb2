"""``rising`` and ``once``: the simplest rules that read what training shows.

``rising`` gives the data to slices whose score has left that of a blind guess: these are being learnt. ``once`` reads the first stage and no
other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from engineers.from_file import DATA, PLAIN, reads
from engineers.knobs import Knob
from engineers.plain.base import Design
from engineers.plain.share_engineers import ShareRule
from engineers.plain.unordered import Parts, Reasons, UnorderedEngineer, as_hard, whole_slices
from engineers.report import SliceResult, StageRecord, StageReport, read_first
from engineers.roles import SliceKnobs, find_slices, natural_key
from engineers.tiers import Tier

Results = dict[str, SliceResult]
UNKNOWN_BLIND = 0.05  # the spread of a blind guess where its score is 0 or not known


@reads({"learnt": PLAIN, "keep": PLAIN, "sure": PLAIN, "gap": PLAIN, "flat": PLAIN, "thresholds": DATA})
class RisingEngineer(UnorderedEngineer):
    """``learnt`` is the success from which a slice is only rehearsed; these have a third of ``keep`` of the data at first and ``keep`` in
    the last stage, because what is forgotten early comes back. A slice rises if its score is ``sure`` standard errors above a blind guess, or
    in the first stage, unless two stages have closed less than ``gap`` of what it lacked. Any other has ``flat`` of a rising one's data.
    Where nothing rises, the data is divided as in the target. ``thresholds`` are those of ``rules``, for difficulties and ordered slices.
    """

    name = "rising"
    tier = Tier.REPORT

    def __init__(
        self,
        *,
        learnt: float = 0.8,
        keep: float = 0.3,
        sure: float = 1.0,
        gap: float = 0.15,
        flat: float = 0.05,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.learnt, self.keep, self.sure, self.gap, self.flat = learnt, keep, sure, gap, flat

    def divided(
        self, report: StageReport, current: BaseModel, slices: Sequence[SliceKnobs], weights: Mapping[str, float]
    ) -> tuple[Parts, Reasons]:
        of_config = whole_slices(current)
        stages = [(record, whole(record, report), results(record, report)) for record in report.records()]
        kinds = {piece.name: self.kind(of_config[piece.name], stages, report) for piece in slices}
        _, last, late = stages[-1]
        none = "" if "rising" in kinds.values() else "; nothing rises, so all are drawn as in the target"
        reasons = {
            name: f"{kind}{as_shown(last.get(name), late.get(name), report)}{none}" for name, kind in kinds.items()
        }
        return shared(kinds, self.kept(report), self.flat, weights), reasons

    def kept(self, report: StageReport) -> float:
        """The part for rehearsal: it grows with each decision."""
        if report.rounds_left is None:
            return self.keep
        done, decisions = report.stage, report.stage + report.rounds_left
        return self.keep * (1 + 2 * done / max(1, decisions - 1)) / 3

    def kind(
        self, piece: SliceKnobs, stages: Sequence[tuple[StageRecord, Results, Results]], report: StageReport
    ) -> str:
        """``learnt``, ``rising`` or ``flat``: success of the last half, score of the whole.

        By the stages with data of the slice at the difficulties that it had last: a harder one scores less, though more is learnt.
        """
        name = piece.name
        seen = [(record, row[name], late[name]) for record, row, late in stages if name in late]
        if not seen:
            return "rising"
        last, row, _ = seen[-1]
        seen = [one for one in seen if as_hard(one[0], piece, last.config)]
        successes = [late.rate(report.objective) or 0.0 for _, _, late in seen]
        if successes[-1] >= self.learnt and (not report.target or as_hard(last, piece, report.target)):
            return "learnt"
        scores = [score_of(one, report) for _, one, _ in seen]
        if len(stages) == 1 or not any(scores):
            return "rising"  # without any credit, what cannot be learnt looks like what has not begun
        stopped = len(scores) > 2 and scores[-1] - scores[-3] < self.gap * (1 - scores[-3])
        if stopped and max(successes) < self.learnt:
            return "flat"
        blind = report.blind_scores.get(name, 0.0)
        level = max(blind, UNKNOWN_BLIND)
        error = math.sqrt(level * (1 - level) / row.episodes)
        return "rising" if scores[-1] >= blind + self.sure * error else "flat"


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
        design.share_out(slices, shared(kinds, self.keep, 0.0, dict.fromkeys(kinds, 1.0)), kinds)
        return design


def results(record: StageRecord, report: StageReport) -> Results:
    """What the last half of a stage showed of each slice."""
    return {row.name: row for row in read_first(record, report.objective)}


def whole(record: StageRecord, report: StageReport) -> Results:
    """What all of a stage showed of each slice."""
    return results(record, report) | {row.name: row for row in record.training_results if row.episodes}


def score_of(row: SliceResult, report: StageReport) -> float:
    """The mean score; where there is none, success."""
    return row.score if row.score is not None else row.rate(report.objective) or 0.0


def as_shown(row: SliceResult | None, late: SliceResult | None, report: StageReport) -> str:
    """What a stage showed of a slice, for a reason: all of it, and its last half."""
    if row is None or late is None:
        return ": no data in this stage"
    half = " in the last half" if late.episodes < row.episodes else ""
    score = "" if row.score is None else f", score {row.score:.2f}"
    return f": success {late.rate(report.objective) or 0.0:.2f}{half}{score} in {row.episodes} episodes"


def shared(kinds: Mapping[str, str], keep: float, flat: float, weights: Mapping[str, float]) -> dict[str, float]:
    """Learnt slices have ``keep`` of the data. Of the rest, a flat one has ``flat`` of what it had as a rising one. Slices of one kind
    are drawn as their weights say.

    Where nothing rises, all are: more data would only go to what cannot be learnt.
    """
    most = max(weights.values())
    even = {name: weights[name] / most for name in kinds}
    if "rising" not in kinds.values():
        return {name: weight / sum(even.values()) for name, weight in even.items()}
    learnt = sum(even[name] for name, kind in kinds.items() if kind == "learnt")
    others = {
        name: even[name] * (1.0 if kind == "rising" else flat) for name, kind in kinds.items() if kind != "learnt"
    }
    left = 1.0 - keep if learnt else 1.0
    total = sum(others.values())
    return {name: left * others[name] / total if name in others else keep * even[name] / learnt for name in kinds}
