"""``fixed``: the config never changes. The baseline that every engineer has to beat."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from engineers.knobs import Knob
from engineers.plain.base import Design, PlainEngineer
from engineers.report import StageReport
from engineers.tiers import Tier


class FixedEngineer(PlainEngineer):
    """Keeps the current config."""

    name = "fixed"
    tier = Tier.NOTHING

    def __init__(self) -> None:  # no option would change anything
        super().__init__()

    def design(self, report: StageReport, current: BaseModel, knobs: Sequence[Knob]) -> Design:
        return Design()
