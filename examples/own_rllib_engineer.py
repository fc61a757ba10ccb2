"""An engineer in your own RLlib script, with your own environment: it turns the shares of two slices.

python examples/own_rllib_engineer.py --iterations 12    # about a minute on two cores, a line per iteration
"""

import argparse
import logging
import tempfile

import gymnasium as gym
import numpy as np
from pydantic import BaseModel, Field
from ray.rllib.algorithms.ppo import PPO, PPOConfig

from envtuning import EngineerCurriculum, RLlibCurriculumCallback


class Side(BaseModel):
    share: float = Field(0.5, ge=0, le=1, description="Part of the episodes.")
    distance: int = Field(2, ge=1, le=10, description="Cells from the start to the goal.")


class Sides(BaseModel):
    left: Side = Side(distance=2)
    right: Side = Side(distance=9)


class Walk(gym.Env):
    """A line of cells; the goal is to the left or to the right, and there are 12 steps."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, env_config):
        self.config = env_config["config"]

    def set_config(self, config):
        self.config = config  # it counts from the next reset on

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        sides = dict(self.config)
        weights = np.array([side.share for side in sides.values()])
        self.slice = str(self.np_random.choice(list(sides), p=weights / weights.sum()))
        distance = sides[self.slice].distance
        self.goal, self.place, self.steps = (-distance if self.slice == "left" else distance), 0, 0
        return self._seen(), {}

    def step(self, action):
        before = abs(self.goal - self.place)
        self.place, self.steps = self.place + 2 * int(action) - 1, self.steps + 1
        left = abs(self.goal - self.place)
        info = {"slice": self.slice, "is_success": left == 0, "score": max(0.0, 1 - left / abs(self.goal))}
        return self._seen(), 0.1 * (before - left) + (left == 0), left == 0, self.steps == 12, info

    def _seen(self):
        return np.clip(np.array([self.place, self.goal], np.float32) / 12, -1, 1)


def main(iterations=12, num_env_runners=0):
    logging.getLogger("ray.rllib").setLevel(logging.ERROR)  # it warns of its own renamings
    # About six questions will be asked in 12 iterations: `max_questions` tells `steady` how long training is.
    curriculum = EngineerCurriculum("steady", Sides(), target=Sides(), every=150, max_questions=6)
    settings = PPOConfig().environment(Walk, env_config={"config": Sides()})  # a class needs no registration
    settings = settings.env_runners(num_env_runners=num_env_runners, num_envs_per_env_runner=8)
    settings = settings.training(lr=1e-3, train_batch_size_per_learner=1024, minibatch_size=256, num_epochs=4)
    settings = settings.callbacks(RLlibCurriculumCallback.following(curriculum))
    algorithm = settings.build_algo()
    for _ in range(iterations):
        result = algorithm.train()
        print(result["training_iteration"], f"{result['env_runners']['episode_return_mean']:.2f}", result["curriculum"])
    for proposal in curriculum.proposals:
        print(proposal.config, [f"{change.path}: {change.reason}" for change in proposal.reasons])
    folder = RLlibCurriculumCallback.save(algorithm, tempfile.mkdtemp())
    algorithm.stop()

    again = PPO.from_checkpoint(str(folder))  # the curriculum comes with it
    again.train()
    restored = RLlibCurriculumCallback.of(again).curriculum
    print(restored)  # a line for each stage, from both parts of the training
    again.stop()
    return curriculum, restored


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=12)
    parser.add_argument("--num-env-runners", type=int, default=0)
    main(**vars(parser.parse_args()))
