"""``GymTask``: the part of a ``GymWorld`` that its user writes: an environment for each slice, and how an episode is judged."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import gymnasium as gym
from pydantic import BaseModel

from envtuning.worlds.gym_cases import GymCases
from envtuning.worlds.world import World

C = TypeVar("C", bound=BaseModel)

FAILURES = {
    "failed": "the environment ended the episode, and the task was not done",
    "out_of_time": "the episode reached its limit of steps, and the task was not done",
    "policy_error": "the policy raised an error or returned an invalid action",
}


class GymTask(World[C, GymCases]):
    """What is played and what counts as success; ``GymWorld`` adds drawing, playing and training."""

    forms = frozenset({"acts"})
    reports = frozenset({"success_rate", "reward", "episode_length"})
    max_steps: ClassVar[int] = 10_000  # ends an episode that the environment has not ended itself

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "about" in vars(cls):  # the base class already explains its own kinds of failures
            cls.about = replace(cls.about, failures=FAILURES | dict(cls.about.failures))

    @abstractmethod
    def make(self, config: C, slice: str) -> gym.Env:
        """An environment for this slice of the config; each seed of ``reset`` gives another episode."""

    def success(self, reward: float, terminated: bool, info: Mapping[str, Any]) -> bool:
        """Whether the task was done, by the episode's last step.

        By default ``info["is_success"]`` or ``info["success"]``; without them, terminated with a reward above 0.
        """
        said = info.get("is_success", info.get("success"))
        return bool(said) if said is not None else terminated and reward > 0

    def score(self, reward: float, terminated: bool, info: Mapping[str, Any]) -> float:
        """How well the episode went, 0 to 1, by its last step; ``about.score_in_words`` says what it is. By default 1 for a success."""
        return float(self.success(reward, terminated, info))

    def failure(self, reward: float, terminated: bool, info: Mapping[str, Any]) -> str:
        """The kind of a failed episode; ``about.failures`` says what each means."""
        return "failed" if terminated else "out_of_time"

    def fingerprint(self, env: gym.Env, seed: int) -> str | bytes:
        """Identifies the case of the last reset; equal for cases that are the same to a learner.

        By default it is the seed, which is right if every seed gives a new case: held-out seeds are never used in training.
        If different seeds may give the same case, return its content, such as the grid's bytes. The fingerprint is
        computed at every training reset.
        """
        return f"seed {seed}"

    def picture(self, env: gym.Env) -> str:
        """The environment as text at the end of a failed episode, for the report. Empty by default."""
        return ""
