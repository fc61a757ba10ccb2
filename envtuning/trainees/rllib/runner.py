"""``LakeEnvRunner``: RLlib's EnvRunner over the native batch."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.policy.sample_batch import SampleBatch
from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED, NUM_ENV_STEPS_SAMPLED_LIFETIME

from envtuning.trainees.lakes.options import LakeOptions
from envtuning.trainees.lakes.sampler import LakeSampler
from mapf_frozenlake.types import NUM_ACTIONS
from mapf_frozenlake.world.batch import LakeBatch


class AgentBatch(LakeBatch):
    """The native batch with the attributes that RLlib's EnvRunner expects; its spaces are those of one agent."""

    @property
    def single_observation_space(self) -> gym.spaces.Box:
        return gym.spaces.Box(-1.0, 1.0, (self.layout.size,), np.float32)

    @property
    def single_action_space(self) -> gym.spaces.Discrete:
        return gym.spaces.Discrete(NUM_ACTIONS)

    observation_space = single_observation_space
    action_space = single_action_space

    @property
    def unwrapped(self) -> AgentBatch:
        return self

    def close(self) -> None:
        """Nothing to release."""


class LakeEnvRunner(SingleAgentEnvRunner):
    """Samples batches of experience ready to learn from, advantages included, instead of episode objects.

    After ``begin(seed)``, its samples depend only on the weights, the config and the seed.
    """

    env: AgentBatch | None

    def make_env(self) -> None:
        lakes = dict(self.config.env_config)
        self.options: LakeOptions = lakes.pop("options")
        self.env = AgentBatch(num_envs=self.config.num_envs_per_env_runner, **lakes)
        self.num_envs = self.env.num_envs
        self.sampler: LakeSampler | None = None  # None before ``begin``
        self.outcomes: dict[str, float] = {}  # of the last sample: env_steps, episodes, successes, valid, …

    def begin(self, seed: int) -> None:
        """Start every episode anew; all randomness comes from ``seed`` and this runner's index."""
        assert self.env is not None
        self.sampler = LakeSampler(self.env, self.options.rollout, seed, self.worker_index)

    def sample(self, **_: Any) -> SampleBatch:
        """One rollout of every lake, which continues the last one."""
        if self.sampler is None:
            self.begin(self.config.seed or 0)
        assert self.sampler is not None
        experience, self.outcomes = self.sampler.experience(self.module, self.options)
        return SampleBatch(experience)

    def get_metrics(self) -> Any:
        steps = int(self.outcomes["env_steps"])
        self.num_env_steps_sampled_lifetime += steps
        self.metrics.log_value(NUM_ENV_STEPS_SAMPLED, steps, reduce="sum")
        self.metrics.log_value(NUM_ENV_STEPS_SAMPLED_LIFETIME, steps, reduce="lifetime_sum")
        return self.metrics.reduce()
