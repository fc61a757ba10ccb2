"""``half-success``: train where half of the episodes succeed, since p(1 − p) is greatest there.

The data moves towards the target up to the point where half of the episodes should succeed, and the target's slices are
weighted by their own p(1 − p). If nothing succeeds, the next stage is easier.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from engineers.knobs import Knob, dump
from engineers.plain.base import Design
from engineers.plain.rules import Thresholds, eased
from engineers.plain.shares import mixed_with_uniform
from engineers.plain.signals import Signals, learnability, signals
from engineers.plain.way import Walker, Way, fraction_with, shares_ahead
from engineers.report import StageReport
from engineers.roles import find_slices, with_beside
from engineers.tiers import Tier

UNIFORM_PART = 0.2  # part of the data for all slices of the target equally, so that every slice is seen again
LIMITS = Thresholds()  # thresholds of learnable and of dead, as in ``rules``


class HalfSuccessEngineer(Walker):
    """Moves to where half of the episodes should succeed. Without a target, it keeps difficulties and weights the slices by their success in training."""

    name = "half-success"
    tier = Tier.SLICE_SUCCESS

    def design(self, report: StageReport, current: BaseModel, knobs: Sequence[Knob]) -> Design:
        slices, design = find_slices(knobs), Design()
        seen = signals(report, report.objective, slices)
        if seen.here is None:
            return design
        way = Way(slices, dump(current), report.target, self.range_of)
        rates = (seen.validated if way.is_known else seen.here) or seen.here
        aims = way.aims
        shares = mixed_with_uniform({name: learnability(rates[name]) for name in aims}, UNIFORM_PART)
        if not way.is_known:
            way.turn_shares(design, shares, 1.0, "in proportion to p(1 − p)")
            return design
        fraction, why = step(seen)
        way.turn_shares(design, shares, fraction if fraction < 0 else shares_ahead(fraction, seen.there()), why)
        for slice_ in with_beside(slices, knobs):
            way.turn_dials(design, slice_, *step(seen, slice_.name))
        return design


def step(seen: Signals, name: str | None = None) -> tuple[float, str]:
    """The fraction of the way to half success, and the reason; negative if nothing succeeds, so that the next stage is easier.

    ``name``: for one slice's dials; else for all the data together.
    """
    here = seen.here
    assert here is not None, "a step is taken from where something was measured"
    trained, on_target = here.pooled if name is None else here[name], seen.there(name)
    if max(trained, on_target) <= LIMITS.dead_below(here):
        return -LIMITS.easing, eased(trained)
    fraction = fraction_with(LIMITS.frontier, trained, on_target)
    return fraction, f"{seen.told(trained, name)}: {fraction:.0%} of the way to it"
