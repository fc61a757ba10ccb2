"""``learnability``: train where half of the episodes succeed. The variance p(1 − p) measures how much can be learnt
(sampling for learnability): the data moves towards the target up to the point where half of the episodes should succeed,
and the target's slices are weighted by their own p(1 − p).
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from engineers.guard import NO_GUARD, Guard
from engineers.knobs import Knob, dump
from engineers.plain.base import Design
from engineers.plain.signals import learnability, signals
from engineers.plain.way import Walker, Way, part_with, shares_ahead
from engineers.report import StageReport
from engineers.roles import find_slices, with_beside
from engineers.space import Space

UNIFORM_PART = 0.2  # of the data goes to all slices of the target alike, so that none is never seen again
COIN = 0.5  # the success at which p(1 − p) is greatest


class LearnabilityEngineer(Walker):
    """Without a target, it keeps difficulties and weights the slices by their success in training."""

    name = "learnability"

    def design(self, report: StageReport, current: BaseModel, knobs: Sequence[Knob]) -> Design:
        slices, design = find_slices(knobs), Design()
        seen = signals(report, report.objective, slices)
        if seen.here is None:
            return design
        way = Way(slices, dump(current), report.target, self.range_of)
        rates = (seen.validated if way.is_known else seen.here) or seen.here
        aims = way.aims([piece.name for piece in slices])
        shares = mixed_with_uniform({name: learnability(rates[name]) for name in aims}, UNIFORM_PART)
        if not way.is_known:
            way.turn_shares(design, shares, 1.0, "in proportion to p(1 − p)")
            return design
        part = part_with(COIN, seen.here.pooled, seen.there())
        why = (
            f"success {seen.here.pooled:.2f} in training, {seen.there():.2f} on the target: {part:.0%} of the way to it"
        )
        way.turn_shares(design, shares, shares_ahead(part, seen.there()), why)
        for piece in with_beside(slices, knobs):
            part = part_with(COIN, seen.here[piece.name], seen.there(piece.name))
            way.turn_dials(design, piece, part, f"half succeed after {part:.0%} of the way")
        return design


def mixed_with_uniform(scores: dict[str, float], uniform_part: float) -> dict[str, float]:
    """Shares that sum to 1: in proportion to the scores, mixed with equal ones; all equal where no score is above 0."""
    total = sum(scores.values())
    if total <= 0:
        return dict.fromkeys(scores, 1.0 / max(len(scores), 1))
    return {name: uniform_part / len(scores) + (1 - uniform_part) * score / total for name, score in scores.items()}


def make(
    _model: str = "",
    *,
    space: Space | None = None,
    guard: Guard = NO_GUARD,
) -> LearnabilityEngineer:
    return LearnabilityEngineer(space=space, guard=guard)
