"""``random``: draws a new value for every knob after each stage, uniformly from its range, by (seed, stage)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from engineers.knobs import Knob
from engineers.plain.base import Design, PlainEngineer
from engineers.report import StageReport
from engineers.roles import split_by_role
from engineers.tiers import Tier

DRAWS = 20  # draws of one slice until the generator accepts one; after them the slice stays as it is


class RandomEngineer(PlainEngineer):
    """Draws a config by chance. Numbers are uniform over their range, choices over their options; nulls and free texts are left alone.

    With a ``feasible`` hook slices are drawn one after the other, each until the whole can be drawn, so that one
    impossible slice does not change the others.
    """

    name = "random"
    tier = Tier.NOTHING
    turns = f"{PlainEngineer.turns}, and choices"

    def can_turn(self, knobs: Sequence[Knob]) -> bool:
        shares, others = split_by_role(knobs)
        return len(shares) > 1 or any(self._can_draw(knob) for knob in others)

    def design(self, report: StageReport, current: BaseModel, knobs: Sequence[Knob]) -> Design:
        rng = self.random(report)
        design = Design()
        for group in dict.fromkeys(knob.group for knob in knobs):
            members = [knob for knob in knobs if knob.group == group]
            for _ in range(DRAWS):
                drawn = {knob.path: value for knob in members if (value := self._draw(knob, rng)) is not None}
                values = {**design.values, **drawn}
                names = [".".join(path) for path in values]
                config, refused = self._guarded(values, report, current, names)
                if config is not None:
                    design.values = values
                    break
                design.refusals += refused
        design.reasons = dict.fromkeys(design.values, "drawn at random")
        return design

    def _can_draw(self, knob: Knob) -> bool:
        return len(knob.options) > 1 or "boolean" in knob.types or self.range_of(knob) is not None

    def _draw(self, knob: Knob, rng: random.Random) -> Any:
        if knob.options:
            return rng.choice(knob.options)
        if "boolean" in knob.types:
            return rng.random() < 0.5
        bounds = self.range_of(knob)
        if bounds is None:
            return None
        whole = "number" not in knob.types
        drawn = rng.randint(int(bounds[0]), int(bounds[1])) if whole else rng.uniform(*bounds)
        return knob.fit(drawn, bounds)
