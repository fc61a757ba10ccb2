"""``Observer``: how a loop tells what it is doing, to a terminal or to anything else. Its silence changes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from engineers.report import Incident
from envtuning.runs.folder import Answer, RunFolder, StageFolder


@dataclass(frozen=True)
class Progress:
    """Where a stage stands."""

    stage: int
    env_steps: int  # spent in this stage
    allowance: int  # env steps this stage may spend
    metrics: dict[str, float]  # the latest iteration's


class Observer:
    """Override what you want to hear."""

    def run_began(self, run: RunFolder) -> None:
        pass

    def stage_began(self, stage: StageFolder, allowance: int) -> None:
        pass

    def progressed(self, progress: Progress) -> None:
        pass

    def validated(self, stage: StageFolder, metrics: dict[str, float]) -> None:
        pass

    def stage_ended(self, stage: StageFolder) -> None:
        pass

    def engineer_asked(self, stage: StageFolder, name: str) -> None:
        pass

    def engineer_answered(self, stage: StageFolder, answer: Answer) -> None:
        pass

    def went_wrong(self, incident: Incident) -> None:
        pass

    def test_opened(self, boards: int) -> None:
        pass

    def run_left(self) -> None:
        """Nobody works on the run any more: it is finished, stopped or interrupted."""
