"""``rising``, ``steady`` and ``once``: the simplest rules that read what training shows.

``rising`` gives the data to slices whose score has left that of a blind guess: these are being learnt. ``steady``, the default, takes data from
the others step by step, and leaves what is learnt as much as it still lacks. ``once`` reads the first stage and no other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel

from engineers.from_file import DATA, PLAIN, reads
from engineers.knobs import Knob
from engineers.plain.base import Design
from engineers.plain.share_engineers import ShareRule
from engineers.plain.unordered import Parts, Reasons, UnorderedEngineer, as_hard, whole_slices
from engineers.report import SliceResult, StageRecord, StageReport, enough, read_first
from engineers.roles import SliceKnobs, find_slices, natural_key
from engineers.tiers import Tier

Results = dict[str, SliceResult]
BEGUN = 0.5  # of what a slice lacked at a blind guess: if one has closed so much, those that stand still can be told from it
UNKNOWN_BLIND = 0.05  # the spread of a blind guess where its score is 0 or not known


class Stage(NamedTuple):
    """What a stage showed of each slice."""

    record: StageRecord
    whole: Results
    late: Results  # the last half of the stage


Stages = Sequence[Stage]


@reads({"learnt": PLAIN, "keep": PLAIN, "sure": PLAIN, "gap": PLAIN, "flat": PLAIN, "thresholds": DATA})
class RisingEngineer(UnorderedEngineer):
    """Trains the slices whose score rises above a blind guess, and rehearses those that are learnt.

    ``learnt`` is the success from which a slice is only rehearsed. These have a third of ``keep`` of the data together at first and ``keep`` in
    the last stage, because what is forgotten early comes back. A slice rises if its score is ``sure`` standard errors above a blind guess, in
    its first stage, or if it never had any credit, unless two stages have closed less than ``gap`` of what it lacked. Any other has ``flat`` of
    a rising one's data. Where nothing rises, the data is divided as in the target. ``thresholds`` are those of ``rules``, for difficulties and
    ordered slices.
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
        raise_unless_in_range(learnt=learnt, keep=keep, sure=sure, gap=gap, flat=flat)
        self.learnt, self.keep, self.sure, self.gap, self.flat = learnt, keep, sure, gap, flat

    def divided(
        self, report: StageReport, current: BaseModel, slices: Sequence[SliceKnobs], weights: Mapping[str, float]
    ) -> tuple[Parts, Reasons]:
        of_config = whole_slices(current)
        stages = [Stage(record, whole(record, report), results(record, report)) for record in report.records()]
        kinds = {piece.name: self.kind(of_config[piece.name], stages, report) for piece in slices}
        parts = {name: self.part(kind, of_config[name], stages, report) for name, kind in kinds.items()}
        none = (
            ""
            if "rising" in kinds.values()
            else f"; nothing rises, so all are drawn {'as in the target' if report.target else 'evenly'}"
        )
        reasons = {
            name: f"{self.in_words(kind, name, stages, report)}{as_shown(name, stages[-1], report)}{none}"
            for name, kind in kinds.items()
        }
        return shared(kinds, parts, self.kept(report), weights), reasons

    def part(self, kind: str, piece: SliceKnobs, stages: Stages, report: StageReport) -> float:
        """What a slice has of the data of a rising one; a learnt one has its rehearsal besides."""
        return {"rising": 1.0, "flat": self.flat, "learnt": 0.0}[kind]

    def kept(self, report: StageReport) -> float:
        """The part for rehearsal: it grows with each decision."""
        if report.rounds_left is None:
            return self.keep
        done, decisions = report.stage, report.stage + report.rounds_left
        return self.keep * (1 + 2 * done / (decisions - 1)) / 3 if decisions > 1 else self.keep

    def kind(self, piece: SliceKnobs, stages: Stages, report: StageReport) -> str:
        """``learnt``, ``rising`` or ``flat``: success of the last half, score of the whole.

        By the stages with data of the slice at the difficulties that it had last: a harder one scores less, though more is learnt.
        """
        name = piece.name
        seen = [stage for stage in stages if name in stage.late]
        if not seen:
            return "rising"
        first, last = len(seen) == 1, seen[-1]
        seen = [stage for stage in seen if as_hard(stage.record, piece, last.record.config)]
        successes = [stage.late[name].rate(report.objective) or 0.0 for stage in seen]
        if successes[-1] >= self.learnt and (not report.target or as_hard(last.record, piece, report.target)):
            return "learnt"
        scores = [score_of(stage.whole[name], report) for stage in seen]
        if first or not any(scores):
            return "rising"  # without any credit, what cannot be learnt looks like what has not begun
        stopped = len(scores) > 2 and scores[-1] - scores[-3] < self.gap * (1 - scores[-3])
        if stopped and max(successes) < self.learnt:
            return "flat"
        return "rising" if self.scores_more_than_a_guess(last.whole[name], report) else "flat"

    def scores_more_than_a_guess(self, row: SliceResult, report: StageReport) -> bool:
        blind = report.blind_scores.get(row.name, 0.0)
        level = max(blind, UNKNOWN_BLIND)
        error = math.sqrt(level * (1 - level) / row.episodes)
        return score_of(row, report) >= blind + self.sure * error

    def in_words(self, kind: str, name: str, stages: Stages, report: StageReport) -> str:
        """The kind, for a reason: what rises for want of evidence is not told as if it did."""
        row = next((stage.whole[name] for stage in reversed(stages) if name in stage.whole), None)
        if kind != "rising" or (row is not None and self.scores_more_than_a_guess(row, report)):
            return kind
        return "may still begin, so it counts as rising"


class SteadyEngineer(RisingEngineer):
    """As ``rising``, but a slice that does not rise loses its data step by step.

    One that has not begun looks like one that cannot be learnt. So none is flat before some slice has closed half of what it lacked at a blind
    guess. A flat slice then loses half of its data for each stage in a row in which it is flat, down to ``flat``, or to its success: what
    succeeds can be forgotten. A learnt slice has a rising one's data while its success is ``learnt``, less the more it succeeds, and then its
    rehearsal alone.
    """

    name = "steady"

    def kind(self, piece: SliceKnobs, stages: Stages, report: StageReport) -> str:
        kind = super().kind(piece, stages, report)
        return "rising" if kind == "flat" and not begun(stages, report) else kind

    def part(self, kind: str, piece: SliceKnobs, stages: Stages, report: StageReport) -> float:
        last = next((stage.late[piece.name] for stage in reversed(stages) if piece.name in stage.late), None)
        success = 0.0 if last is None else last.rate(report.objective) or 0.0
        if kind == "learnt" and success < 1:
            return (1 - success) / (1 - self.learnt)
        if kind == "flat":
            return max(self.flat, success, 0.5 ** self.stages_flat(piece, stages, report))
        return super().part(kind, piece, stages, report)

    def stages_flat(self, piece: SliceKnobs, stages: Stages, report: StageReport) -> int:
        """For how many stages with data in a row the slice has been flat."""
        at = [place for place, stage in enumerate(stages, start=1) if piece.name in stage.late]
        flat = [self.kind(piece, stages[:place], report) == "flat" for place in at]
        return len(flat) if all(flat) else flat[::-1].index(False)


@reads({"learnt": PLAIN, "keep": PLAIN, "part": PLAIN})
class OnceEngineer(ShareRule):
    """Reads the first stage and no other. Slices with a success of ``learnt`` in the first stage keep a part ``keep`` of the data; ``part`` of the others, the first by
    name, gets the rest to the end."""

    name = "once"
    tier = Tier.SLICE_SUCCESS

    def __init__(self, *, learnt: float = 0.35, keep: float = 0.2, part: float = 0.5, **options: Any) -> None:
        super().__init__(**options)
        raise_unless_in_range(learnt=learnt, keep=keep, part=part)
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
        parts = {name: 1.0 if kind == "rising" else 0.0 for name, kind in kinds.items()}
        design.share_out(slices, shared(kinds, parts, self.keep, dict.fromkeys(kinds, 1.0)), kinds)
        return design


def raise_unless_in_range(**options: float) -> None:
    """Raises ``ValueError``. All are parts of something but ``sure``, which is a number of standard errors."""
    for name, number in options.items():
        if name == "sure" and not 0 <= number < math.inf:
            raise ValueError(f"sure={number}: give a number of standard errors, 0 or more")
        if name != "sure" and not 0 <= number <= 1:
            raise ValueError(f"{name}={number}: give a number from 0 to 1")


def results(record: StageRecord, report: StageReport) -> Results:
    """What the last half of a stage showed of each slice; all of it, if there are few first visits.

    Where training has no row of a slice, that of validation, or else the probe.
    """
    return {row.name: row for row in read_first(record, report.objective)}


def whole(record: StageRecord, report: StageReport) -> Results:
    """What all of a stage showed of each slice."""
    return results(record, report) | {row.name: enough(row) for row in record.training_results if row.episodes}


def begun(stages: Stages, report: StageReport) -> bool:
    """Whether any slice has closed so much of what it lacked at a blind guess that others can be compared with it."""
    return any(closed(row, report) >= BEGUN for stage in stages for row in stage.whole.values())


def closed(row: SliceResult, report: StageReport) -> float:
    """How much of what it lacks at a blind guess a slice has closed; below 0 if it scores less."""
    blind = report.blind_scores.get(row.name, 0.0)
    return (score_of(row, report) - blind) / (1 - blind) if blind < 1 else 0.0


def score_of(row: SliceResult, report: StageReport) -> float:
    """The mean score; where there is none, success."""
    return row.score if row.score is not None else row.rate(report.objective) or 0.0


def as_shown(name: str, stage: Stage, report: StageReport) -> str:
    """What a stage showed of a slice, for a reason: all of it, and its last half."""
    if name not in stage.whole or name not in stage.late:
        return ": no data in this stage"
    row, late = stage.whole[name], stage.late[name]
    half = " in the last half" if late.episodes < row.episodes else ""
    score = "" if row.score is None else f", score {row.score:.2f}"
    episodes = "first visits" if row.repeats is not None else "episodes"
    return f": success {late.rate(report.objective) or 0.0:.2f}{half}{score} in {row.episodes} {episodes}"


def shared(kinds: Mapping[str, str], parts: Mapping[str, float], keep: float, weights: Mapping[str, float]) -> Parts:
    """Learnt slices have ``keep`` of the data together, and each has its part if that is more; the others divide the rest by their parts. Then
    all are scaled to sum to one. Slices of one kind are drawn as their weights say.

    Where nothing rises, all are: more data would only go to what cannot be learnt.
    """
    most = max(weights.values())
    even = {name: weights[name] / most for name in kinds}
    if "rising" not in kinds.values():
        return {name: weight / sum(even.values()) for name, weight in even.items()}
    learnt = sum(even[name] for name, kind in kinds.items() if kind == "learnt")
    wanted = {name: even[name] * parts[name] for name in kinds}
    others = sum(wanted[name] for name, kind in kinds.items() if kind != "learnt")
    full = (1.0 - keep if learnt else 1.0) / others
    given = {
        name: max(keep * even[name] / learnt, full * wanted[name]) if kind == "learnt" else full * wanted[name]
        for name, kind in kinds.items()
    }
    return {name: part / sum(given.values()) for name, part in given.items()}
