"""``uniform``: the whole space, evenly: domain randomisation as far as one config per stage can express it.

All slices get the same share. Each other number is spread over its range by a Latin hypercube: with n slices the range
is cut into n parts, every slice gets the middle of one, and the parts are assigned again in each stage, so that one stage
covers the range and many stages cover it for every slice. A number that only one slice has is drawn from its whole range in each stage.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from engineers.knobs import Knob
from engineers.plain.base import Design, PlainEngineer
from engineers.report import StageReport
from engineers.roles import role_of, share_of, split_by_role
from engineers.tiers import Tier


class UniformEngineer(PlainEngineer):
    """Covers the whole space evenly: equal shares, every other bounded number spread over its range; choices, nulls' alternatives and texts stay."""

    name = "uniform"
    tier = Tier.NOTHING

    def can_turn(self, knobs: Sequence[Knob]) -> bool:
        shares, others = split_by_role(knobs)
        return len(shares) > 1 or any(self.range_of(knob) is not None for knob in others)

    def design(self, report: StageReport, current: BaseModel, knobs: Sequence[Knob]) -> Design:
        rng = self.random(report)
        design = Design()
        for pattern in dict.fromkeys(knob.pattern for knob in knobs):
            alike = [knob for knob in knobs if knob.pattern == pattern]
            if role_of(alike[0]) == "share":
                for knob in alike:
                    design.turn(knob, share_of(knob, 1.0 / len(alike)), "every slice gets the same share")
                continue
            parts = rng.sample(range(len(alike)), len(alike))
            for knob, part in zip(alike, parts, strict=True):
                bounds = self.range_of(knob)
                if bounds is not None:
                    low, high = bounds
                    if len(alike) > 1:
                        at, reason = (part + 0.5) / len(alike), f"spread evenly over {low:g} to {high:g}"
                    else:  # the middle of a single part would stay for ever
                        at, reason = rng.random(), f"drawn from {low:g} to {high:g}"
                    design.turn(knob, knob.fit(low + at * (high - low), bounds), reason)
        return design
