"""Small worlds for tests: a corridor that is walked to its end, with and without slices, and a trainee for it."""

from __future__ import annotations

import json
import os
import signal
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from pydantic import BaseModel, Field

from envtuning.loop import contract
from envtuning.trainees.base import Trainee
from envtuning.worlds.gym_world import GymWorld
from envtuning.worlds.world import About

LONGEST = 12


class Corridor(gym.Env):
    """Cells in a row: start at one, walk to the flag on another before time is up. Sparse reward."""

    observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, length: int, slack: int) -> None:
        self.length, self.slack = length, slack

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.here, self.flag = self.np_random.permutation(self.length)[:2].tolist()
        self.left = abs(self.here - self.flag) + self.slack
        return self._seen(), {}

    def _seen(self) -> np.ndarray:
        return np.array([self.here / LONGEST, (self.flag - self.here) / LONGEST], np.float32)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.here = min(max(self.here + (1 if action else -1), 0), self.length - 1)
        self.left -= 1
        there = self.here == self.flag
        return self._seen(), float(there), there, not there and self.left <= 0, {}

    def __str__(self) -> str:
        return "".join("A" if cell == self.here else "F" if cell == self.flag else "." for cell in range(self.length))


class CorridorSlice(BaseModel):
    share: float = Field(1.0, ge=0.0, le=1.0, description="Part of the data.")
    tightness: float = Field(0.0, ge=0.0, le=1.0, description="1: not a step to waste; 0: ten.")


class CorridorConfig(BaseModel):
    slices: dict[int, CorridorSlice] = {length: CorridorSlice() for length in (6, 9, 12)}


class CorridorWorld(GymWorld[CorridorConfig]):
    config_type = CorridorConfig
    about = About(
        name="corridor", environment="A walker in a corridor must reach the flag in time.", slice_label="{} cells"
    )

    def make(self, config: CorridorConfig, slice: str) -> gym.Env:
        piece = config.slices[int(slice)]
        return Corridor(int(slice), round(10 * (1 - piece.tightness)))

    def fingerprint(self, env: gym.Env, seed: int) -> str:
        return f"{env.length} {env.here} {env.flag}"

    def picture(self, env: gym.Env) -> str:
        return str(env)


# A run of it, as a file would have it.
CORRIDORS = {
    "name": "corridors-of-tests",
    "world": "tests.envtuning.gym_worlds:CorridorWorld",
    "target": {"slices": {9: {"tightness": 1.0}, 12: {"tightness": 1.0}}},
    "stages": [{"config": {"slices": {6: {}, 9: {"share": 0.0}, 12: {"share": 0.0}}}, "budget": 800}, {"budget": 800}],
    "trainee": {"kind": "tests.envtuning.gym_worlds:WalkerTrainee"},
    "suites": {"validation_per_slice": 4, "test_per_slice": 8, "probe_per_slice": 2},
}


class FlatConfig(BaseModel):
    """No slices: its one number makes it harder."""

    pull: float = Field(0.5, ge=0.0, le=1.0, description="How strongly the pole is pulled down, of 20 m/s².")


class PoleWorld(GymWorld[FlatConfig]):
    """Every reset is new: the seed tells cases apart."""

    config_type = FlatConfig
    about = About(name="pole", environment="A pole must be kept upright for 50 steps.")
    max_steps: ClassVar[int] = 50

    def make(self, config: FlatConfig, slice: str) -> gym.Env:
        env = gym.make("CartPole-v1", max_episode_steps=50)
        env.unwrapped.gravity = 20 * config.pull  # type: ignore[attr-defined]
        return env

    def success(self, reward: float, terminated: bool, info: Any) -> bool:
        return not terminated


class Walker:
    """Walks towards the flag, or away from it."""

    def __init__(self, sense: float = 1.0) -> None:
        self.sense = sense

    def act(self, observations: np.ndarray) -> np.ndarray:
        return (self.sense * observations[:, 1] > 0).astype(int)


class WalkerTrainee(Trainee):
    """Learns one number, from the world's own training environment: which way to walk."""

    form = "acts"
    reports = frozenset({"success_rate"})

    def __init__(self, *, world: Any, capacity: Any, exclude: Any = (), seed: int = 0) -> None:
        self.env = world.make_env(capacity["config"], exclude=exclude, capacity=capacity, seed=seed)
        self.sense = -0.1

    def train(self, config: Any, budget: int, *, seed: int, on_iteration: Any = None) -> dict[str, float]:
        self.env.set_config(config)
        rng = np.random.default_rng(seed)
        steps = episodes = successes = 0
        observation, _ = self.env.reset(seed=seed)
        while steps < budget:
            action = int((self.sense + rng.normal()) * observation[1] > 0)
            towards = (observation[1] > 0) == bool(action)
            observation, _, terminated, truncated, info = self.env.step(action)
            steps += 1
            if terminated or truncated:
                episodes += 1
                successes += info["is_success"]
                self.sense += 0.05 * (1 if towards else -1) * info["is_success"]
                observation, _ = self.env.reset()
        done = {"env_steps": float(steps), "episodes": float(episodes), "success_rate": successes / max(1, episodes)}
        if on_iteration is not None:
            on_iteration(done)
        return done

    def policy(self) -> Walker:
        return Walker(self.sense)

    def save(self, folder: Path) -> None:
        (folder / "walker.json").write_text(json.dumps(self.sense))

    def load(self, folder: Path) -> None:
        self.sense = json.loads((folder / "walker.json").read_text())

    def close(self) -> None:
        self.env.close()


class AsyncWalkerTrainee(WalkerTrainee):
    """The same on two copies in processes of their own; one is killed in the second call of ``train``, once in a run.

    ``kill_once`` is a file that is made when it was; without a name nobody is killed.
    """

    calls: ClassVar[int] = 0  # of train, by all trainees so far

    def __init__(self, *, world: Any, capacity: Any, exclude: Any = (), seed: int = 0, kill_once: str = "") -> None:
        self.kill_once = Path(kill_once) if kill_once else None
        contract.CLOSING = 1.0  # a copy that is dead is waited for in vain
        make = partial(world.make_env, capacity["config"], exclude=exclude, capacity=capacity)
        self.envs = gym.vector.AsyncVectorEnv([partial(make, seed=seed), partial(make, seed=seed + 1)])
        self.sense = -0.1

    def train(self, config: Any, budget: int, *, seed: int, on_iteration: Any = None) -> dict[str, float]:
        self.envs.call("set_config", config)
        rng = np.random.default_rng(seed)
        observations, _ = self.envs.reset(seed=seed)
        steps = 0
        while steps < budget:
            actions = ((self.sense + rng.normal(size=2)) * observations[:, 1] > 0).astype(int)
            dies = self.kill_once and type(self).calls == 1 and steps >= budget // 2 and not self.kill_once.exists()
            if dies:  # between the question and the answer, where gymnasium's own `close` waits in vain
                os.kill(self.envs.processes[1].pid, signal.SIGSTOP)
            self.envs.step_async(actions)
            if dies:
                self.kill_once.touch()
                os.kill(self.envs.processes[1].pid, signal.SIGKILL)
            observations, rewards, *_ = self.envs.step_wait()
            self.sense += 0.01 * float(rewards.sum())
            steps += 2
        type(self).calls += 1
        return {"env_steps": float(steps), "success_rate": 0.0}

    def close(self) -> None:
        self.envs.close()
