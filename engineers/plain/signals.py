"""What a report says about each slice, in the three numbers that curricula without a model go by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engineers.report import SliceResult, StageReport


@dataclass(frozen=True)
class Reading:
    """Success rates on one slice; None where nothing was measured."""

    trained: float | None = None  # on what it trained on
    validated: float | None = None  # on the target

    @property
    def rate(self) -> float:
        """How it does on what it trains on; where that was not measured, on the target; 0 if neither was."""
        measured = self.trained if self.trained is not None else self.validated
        return 0.0 if measured is None else measured

    @property
    def goal(self) -> float:
        """How it does on the target; where that was not measured, on what it trains on."""
        return self.rate if self.validated is None else self.validated

    @property
    def learnability(self) -> float:
        """p(1 − p), 0 to 1/4, at whichever of the two rates is nearer the frontier."""
        return max(learnability(self.rate), learnability(self.goal))


def learnability(rate: float) -> float:
    """Variance of one success or failure: nothing is learnt where all succeed or all fail."""
    return rate * (1.0 - rate)


def readings(report: StageReport) -> dict[str, Reading]:
    """A reading for every slice that was trained or validated in the stage just finished."""
    trained = rates(report.training_results, report.objective)
    validated = rates(report.results, report.objective)
    names = dict.fromkeys([*validated, *trained])
    return {name: Reading(trained.get(name), validated.get(name)) for name in names}


def rates(results: Iterable[SliceResult], objective: str) -> dict[str, float]:
    """The objective per slice; training draws may know it only as ``success_rate``. Slices without episodes are left out."""
    found = {}
    for result in results:
        value = result.metrics.get(objective, result.metrics.get("success_rate"))
        if result.episodes and value is not None:
            found[result.name] = min(max(value, 0.0), 1.0)
    return found
