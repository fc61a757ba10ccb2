"""Your own environment in your own Stable-Baselines3 script, made harder by the engineer ``rules``: the lines marked ← are all it takes.

pip install -e ".[sb3]"
python examples/own_sb3_own_env.py --steps 30000    # less than a minute on one core
"""

import argparse

import gymnasium as gym
import numpy as np
from pydantic import BaseModel, Field
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

from envtuning import EngineerCurriculum, SB3CurriculumCallback  # ←


class Plain(BaseModel):
    """The config. Each number with two bounds is a knob."""

    distance: int = Field(2, ge=1, le=12, description="Steps from the walker to the flag.")
    wind: float = Field(0.0, ge=0.0, le=0.5, description="Chance that a step goes in a random direction.")


START, TARGET = Plain(), Plain(distance=10, wind=0.2)
MOVES = np.array([(1, 0), (-1, 0), (0, 1), (0, -1)])  # east, north


class Walk(gym.Env):
    """A plain with a flag, which the walker has 30 steps to reach. Nothing else is paid."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gym.spaces.Discrete(len(MOVES))
    config = START

    def set_config(self, config: Plain) -> None:  # ←
        self.config = config  # it counts from the next reset on

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        far = self.config.distance
        east = int(self.np_random.integers(-far, far + 1))
        north = int(self.np_random.choice([-1, 1])) * (far - abs(east))
        self.flag, self.steps = np.array([east, north]), 0  # where it is, seen from the walker
        return self._seen(), {}

    def step(self, action):
        blown = self.np_random.random() < self.config.wind
        self.flag = self.flag - MOVES[self.np_random.integers(len(MOVES)) if blown else action]
        self.steps += 1
        there = not self.flag.any()
        return self._seen(), float(there), there, self.steps == 30, {"is_success": there}  # ←

    def _seen(self):
        return np.clip(self.flag / 12, -1, 1).astype(np.float32)


def main(steps: int = 30_000) -> EngineerCurriculum:
    curriculum = EngineerCurriculum("rules", START, target=TARGET, every=200)  # ← asked after every 200 episodes
    envs = make_vec_env(Walk, n_envs=8, seed=0)
    model = PPO("MlpPolicy", envs, n_steps=256, batch_size=256, n_epochs=4, learning_rate=1e-3, seed=0, device="cpu")
    model.learn(steps, callback=SB3CurriculumCallback(curriculum))  # ←
    print(curriculum)  # a line for each stage: how it went, and what was turned
    print("trained on:", curriculum.config)
    return curriculum


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=30_000)
    main(**vars(parser.parse_args()))
