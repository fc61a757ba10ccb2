"""A world and a trainee whose every cost is a round number, so that a run's sums can be written down beforehand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from envtuning.trainees.base import OnIteration, Trainee
from envtuning.worlds.episodes import Episode
from envtuning.worlds.world import About, InfeasibleConfig, World

STEPS = 7  # env steps of one case
ITERATION = 100  # env steps of one iteration


class CountConfig(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    editable: ClassVar[tuple[str, ...]] = ("level",)

    level: float = Field(0.5, ge=0.0, le=1.0, description="How hard it is.", json_schema_extra={"space": [0.0, 1.0]})
    hint: float = Field(0.0, ge=0.0, le=1.0, description="How much is told.")


class Numbers:
    """Cases that are numbers."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.numbers = list(numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(self.numbers))

    def fingerprints(self) -> frozenset[int]:
        return frozenset(self.numbers)


class CountWorld(World[CountConfig]):
    config_type = CountConfig
    about = About(name="counting", environment="Nothing but costs.", failures={"missed": "The policy said no."})
    forms = frozenset({"plans"})
    played: ClassVar[list[tuple[int, CountConfig]]] = []  # how many cases, by which rules

    def check(self, config: CountConfig) -> None:
        if config.level > 0.5:
            raise InfeasibleConfig(f"level={config.level} cannot be drawn: at most 0.5")

    def draw(self, config: CountConfig, per_slice: int, *, seed: int, purpose: str, exclude: Sequence[Any]) -> Numbers:
        taken = set().union(*(cases.fingerprints() for cases in exclude))
        return Numbers([number for number in range(1000) if number not in taken][:per_slice])

    def load(self, path: Path) -> Numbers:
        return Numbers(json.loads(path.read_text()))

    def play(self, policy: Any, cases: Numbers, config: CountConfig, *, seed: int) -> list[Episode]:
        self.played.append((len(cases), config))
        cost = {"env_steps": STEPS, "episodes": 1}
        return [
            Episode(case, "all", None if (won := policy(number)) else "missed", {"success_rate": float(won)}, cost)
            for case, number in enumerate(cases.numbers)
        ]

    def validated_as(self, target: CountConfig, config: CountConfig) -> CountConfig:
        return target.model_copy(update={"hint": config.hint})


class CountTrainee(Trainee):
    """Spends exactly what it is given. Its policy solves the first cases, one for every 500 steps that it was trained."""

    form = "plans"

    def __init__(self, *, world: Any, capacity: Any, exclude: Any, seed: int) -> None:
        self.steps = 0

    def train(
        self, config: Any, budget: int, *, seed: int, on_iteration: OnIteration | None = None
    ) -> dict[str, float]:
        for begun in range(0, budget, ITERATION):
            steps = min(ITERATION, budget - begun)
            self.steps += steps
            if on_iteration is not None:
                on_iteration({"env_steps": float(steps)})
        return {"env_steps": float(budget)}

    def policy(self) -> Any:
        solved = self.steps // 500
        return lambda number: number < solved

    def save(self, folder: Path) -> None:
        (folder / "steps.json").write_text(json.dumps(self.steps))

    def load(self, folder: Path) -> None:
        self.steps = json.loads((folder / "steps.json").read_text())

    def close(self) -> None:
        """Nothing to give back."""


class Telling(CountTrainee):
    """Ten episodes an iteration; the first iteration has one success, the second two, and so on."""

    def train(self, config, budget, *, seed, on_iteration=None):
        told = 0

        def tell(metrics):
            nonlocal told
            told += 1
            counts = {"episodes": 10, "successes": told, "score_sum": (10 + told) / 2}
            on_iteration(metrics | {"outcomes": {"all": counts}})

        return super().train(config, budget, seed=seed, on_iteration=tell)


class Skill(BaseModel):
    share: float = Field(1.0, ge=0.0, le=1.0, description="Part of the data.")
    level: float = Field(0.5, ge=0.0, le=1.0, description="How hard it is.")


class SkillsConfig(CountConfig):
    editable: ClassVar[tuple[str, ...]] = ("skills",)

    skills: dict[str, Skill] = Field(default_factory=lambda: {f"skill-{number:02}": Skill() for number in range(24)})


class SkillsWorld(CountWorld):
    """The cases are of 24 slices in turn."""

    config_type = SkillsConfig
    about = CountWorld.about

    def draw(self, config: Any, per_slice: int, **named: Any) -> Numbers:
        return super().draw(config, per_slice * len(config.skills), **named)

    def play(self, policy: Any, cases: Numbers, config: Any, *, seed: int) -> list[Episode]:
        names = list(config.skills)
        played = super().play(policy, cases, config, seed=seed)
        return [replace(one, slice=names[one.case % len(names)]) for one in played]
