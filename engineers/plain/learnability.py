"""``learnability``: each slice's share in proportion to p(1 − p), as in sampling for learnability. Other knobs stay."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from engineers.guard import Feasible
from engineers.knobs import Knob
from engineers.plain.base import Design, PlainEngineer
from engineers.plain.signals import Reading, learnability, readings
from engineers.report import StageReport
from engineers.roles import find_slices

UNIFORM_PART = 0.2  # of the data goes to all slices alike, so that none is never seen again


class LearnabilityEngineer(PlainEngineer):
    """p is the success rate on the training draw, on validation where a slice was not trained. Uniform if p(1−p)=0 all over."""

    name = "learnability"

    def design(self, report: StageReport, current: BaseModel, knobs: Sequence[Knob]) -> Design:
        slices, seen = find_slices(knobs), readings(report)
        design = Design()
        scores = {piece.name: learnability(seen.get(piece.name, Reading()).rate) for piece in slices}
        for name, share in mixed_with_uniform(scores, UNIFORM_PART).items():
            piece = next(piece for piece in slices if piece.name == name)
            rate = seen.get(name, Reading()).rate
            design.turn(
                piece.share, piece.share.fit(share), f"p(1−p) = {scores[name]:.3f} at a success rate of {rate:.2f}"
            )
        return design


def mixed_with_uniform(scores: dict[str, float], uniform_part: float) -> dict[str, float]:
    """Shares that sum to 1: in proportion to the scores, mixed with equal ones; all equal where no score is above 0."""
    total = sum(scores.values())
    if total <= 0:
        return dict.fromkeys(scores, 1.0 / max(len(scores), 1))
    return {name: uniform_part / len(scores) + (1 - uniform_part) * score / total for name, score in scores.items()}


def make(_model: str = "", *, feasible: Feasible | None = None, max_drop: float | None = None) -> LearnabilityEngineer:
    return LearnabilityEngineer(feasible=feasible, max_drop=max_drop)
