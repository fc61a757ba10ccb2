"""``failure-share``: the target's slices get data by how often they fail, above a floor. It reads only success for each slice.

It only measures low success, like a thermometer: an engineer that beats it uses more than that. It gives the most data to
slices that can never be learnt. Difficulties stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engineers.plain.share_engineers import ShareEngineer
from engineers.plain.share_rules import RatesByStage
from engineers.plain.signals import rates
from engineers.report import StageReport, read_first


class FailureShareEngineer(ShareEngineer):
    """The last stage's rates, each drawn towards that of all slices the more the fewer episodes it has."""

    name = "failure-share"
    rule = "failure"

    def rates(self, report: StageReport, names: Sequence[str]) -> RatesByStage:
        seen = rates(read_first(report, report.objective), report.objective)
        return [] if seen is None else [np.array([seen[name] for name in names])]
