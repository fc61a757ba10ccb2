"""A toy world in words: guess a number in a few turns, told "higher" or "lower"; and a trainee that replies."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from pydantic import BaseModel, Field

from envtuning.trainees.base import Trainee
from envtuning.worlds.any_text import CHARACTERS, AnyText
from envtuning.worlds.talk_world import TalkWorld
from envtuning.worlds.world import About


class Piece(BaseModel):
    share: float = Field(1.0, ge=0.0, le=1.0, description="Part of the data.")
    turns: int = Field(6, ge=3, le=8, description="Guesses that are allowed.")


class GuessConfig(BaseModel):
    pieces: dict[int, Piece] = Field({40: Piece(), 80: Piece()}, description="By the greatest number.")


class Guess(gym.Env):
    """One number from 1 to the greatest; the last reply that is no number is a turn lost."""

    observation_space = action_space = AnyText(1000, min_length=0, charset=CHARACTERS)

    def __init__(self, greatest: int, turns: int) -> None:
        self.greatest, self.turns = greatest, turns

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[str, dict]:
        super().reset(seed=seed)
        self.number = int(self.np_random.integers(1, self.greatest + 1))
        self.left = self.turns
        return f"Guess my number, 1 to {self.greatest}.", {}

    def step(self, reply: str) -> tuple[str, float, bool, bool, dict]:
        self.left -= 1
        said = int(reply) if reply.isdigit() else 0
        if said == self.number:
            return "Yes.", 1.0, True, False, {}
        return ("Higher." if said < self.number else "Lower."), 0.0, False, self.left == 0, {}


class GuessWorld(TalkWorld[GuessConfig]):
    config_type = GuessConfig
    about = About(
        name="guess",
        environment="A number is guessed in a few turns.",
        failures={"out_of_time": "the number was not found in time"},
        unit="samples",
    )

    def make(self, config: GuessConfig, slice: str) -> Guess:
        return Guess(int(slice), config.pieces[int(slice)].turns)

    def fingerprint(self, env: Guess, seed: int) -> str:
        return f"{env.number} of {env.greatest}"


class Bisecting:
    """Bisects, and is off by as much as it has not learnt yet."""

    def __init__(self, skill: float) -> None:
        self.skill = skill

    def reply(self, conversations: Any, *, seed: int) -> list[str]:
        return [self._guess(messages, seed + place) for place, messages in enumerate(conversations)]

    def _guess(self, messages: list[dict[str, str]], seed: int) -> str:
        low, high = 1, int(re.search(r"to (\d+)", messages[0]["content"]).group(1))
        for said, answer in zip(messages[1::2], messages[2::2], strict=True):
            if answer["content"] == "Higher.":
                low = max(low, int(said["content"]) + 1)
            else:
                high = min(high, int(said["content"]) - 1)
        off = round((1 - self.skill) * (high - low) * float(np.random.default_rng(seed).uniform(-0.5, 0.5)))
        return str(min(max((low + high) // 2 + off, 1), 99))


class BisectingTrainee(Trainee):
    """Gains skill by the sample."""

    form = "replies"
    reports = frozenset({"success_rate"})

    def __init__(self, *, world: Any, capacity: Any, exclude: Any = (), seed: int = 0) -> None:
        self.world, self.skill = world, 0.0

    def train(self, config: Any, budget: int, *, seed: int, on_iteration: Any = None) -> dict[str, float]:
        spent, played = 0, []
        for number in range(budget):
            cases = self.world.draw(config, 2, seed=seed + number, purpose="probe", exclude=())
            episodes = self.world.play(self.policy(), cases, config, seed=seed + number)
            played += episodes
            spent += sum(episode.cost["samples"] for episode in episodes)
            self.skill += 0.01 * (1 - self.skill)
            if spent >= budget:
                break
        rate = float(np.mean([episode.succeeded for episode in played]))
        done = {"samples": float(spent), "episodes": float(len(played)), "success_rate": rate}
        if on_iteration is not None:
            on_iteration(done)
        return done

    def policy(self) -> Bisecting:
        return Bisecting(self.skill)

    def save(self, folder: Path) -> None:
        (folder / "skill.json").write_text(json.dumps(self.skill))

    def load(self, folder: Path) -> None:
        self.skill = json.loads((folder / "skill.json").read_text())

    def close(self) -> None:
        """Nothing to give back."""
