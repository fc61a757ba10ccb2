"""Trainees and observers for ``counting_world`` that write down what the loop asks of them and tells them."""

from __future__ import annotations

from typing import Any

from envtuning.loop.observer import Observer
from tests.envtuning.counting_world import CountTrainee


class Told(Observer):
    """Writes down what it hears of incidents and stages."""

    def __init__(self) -> None:
        self.wrong: list[tuple[str, int, str]] = []
        self.ended: list[int] = []

    def went_wrong(self, incident: Any) -> None:
        self.wrong.append((incident.kind, incident.stage, incident.message))

    def stage_ended(self, stage: Any) -> None:
        self.ended.append(stage.number)


class Asked(CountTrainee):
    """Writes down how it is asked to train."""

    budgets: list[int]
    seeds: list[int]
    made = 0

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        type(self).made += 1

    def train(self, config: Any, budget: int, *, seed: int, on_iteration: Any = None) -> dict[str, float]:
        self.budgets.append(budget)
        self.seeds.append(seed)
        return super().train(config, budget, seed=seed, on_iteration=on_iteration)
