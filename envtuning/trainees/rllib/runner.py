"""``LakeEnvRunner``: RLlib's EnvRunner over the native batch. One forward pass and one kernel call move every agent."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.policy.sample_batch import SampleBatch
from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED, NUM_ENV_STEPS_SAMPLED_LIFETIME

from envtuning.trainees.rllib.rollout import Rollout, draw_actions
from mapf_frozenlake.types import NUM_ACTIONS, Action
from mapf_frozenlake.world.batch import LakeBatch


class AgentBatch(LakeBatch):
    """The native batch by the names that RLlib's EnvRunner has for an environment; its spaces are one agent's."""

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
        """Nothing to give back."""


class LakeEnvRunner(SingleAgentEnvRunner):
    """Samples batches of experience ready to learn from, advantages included, instead of episode objects.

    After ``begin(seed)`` what it samples depends on the weights, the config and the seed alone.
    """

    env: AgentBatch | None

    def make_env(self) -> None:
        self.env = AgentBatch(num_envs=self.config.num_envs_per_env_runner, **self.config.env_config)
        self.num_envs = self.env.num_envs
        self._rollout: Rollout | None = None  # None: nothing has begun
        self._random = np.random.default_rng()
        self.outcomes: dict[str, float] = defaultdict(
            float
        )  # of the last sample: env_steps, episodes, successes, valid, …

    def begin(self, seed: int) -> None:
        """Start every episode anew, all randomness from ``seed`` and this runner's index."""
        env = self.env
        assert env is not None
        own = np.random.SeedSequence([seed, self.worker_index])
        self._random = np.random.default_rng(own)
        length = self.config.get_rollout_fragment_length(self.worker_index)
        self._rollout = Rollout.empty(length, env.num_envs, env.max_agents, env.layout.size)
        env.seed(own.generate_state(env.num_envs, np.uint32).astype(np.int64))
        self._rollout.rows[-1] = env.reset()

    def sample(self, **_: Any) -> SampleBatch:
        """One rollout of ``rollout_fragment_length`` steps in each lake, from where the last one left off."""
        if self._rollout is None:
            self.begin(self.config.seed or 0)
        rollout, env = self._rollout, self.env
        assert rollout is not None
        assert env is not None
        self.outcomes.clear()
        ended = rollout.ended[-1].copy()
        rollout.rows[0] = rollout.rows[-1]
        for t in range(len(rollout)):
            rollout.active[t] = env.active
            rollout.moved[t] = ~ended  # an episode that has ended is replaced in this step
            self._decide(rollout, t)
            step = env.step(rollout.actions[t])
            rollout.rows[t + 1] = step.observation
            rollout.rewards[t] = step.rewards
            rollout.terminated[t] = step.terminated
            ended = rollout.ended[t] = (step.terminated | step.truncated).astype(np.bool_)
            self._count(ended)
        rollout.values[-1][env.active] = self._forward(rollout.rows[-1][env.active])[1]
        self.outcomes["env_steps"] = int(rollout.moved.sum())
        self.outcomes["reward"] = float(rollout.rewards.sum() / rollout.active.sum(axis=2).mean())
        return SampleBatch(rollout.experience(self.config.gamma, self.config.lambda_))

    def get_metrics(self) -> Any:
        steps = int(self.outcomes["env_steps"])
        self.num_env_steps_sampled_lifetime += steps
        self.metrics.log_value(NUM_ENV_STEPS_SAMPLED, steps, reduce="sum")
        self.metrics.log_value(NUM_ENV_STEPS_SAMPLED_LIFETIME, steps, reduce="lifetime_sum")
        return self.metrics.reduce()

    def _decide(self, rollout: Rollout, t: int) -> None:
        """Draw the actions of step t, and write down what the network thought of them."""
        agents = rollout.active[t]
        logits, values = self._forward(rollout.rows[t][agents])
        actions = np.empty(len(logits), np.int64)
        log_probs = np.empty(len(logits), np.float32)
        draw_actions(logits, self._random.random(len(logits), dtype=np.float32), actions, log_probs)
        rollout.actions[t] = int(Action.WAIT)
        rollout.actions[t][agents] = actions
        rollout.log_probs[t][agents] = log_probs
        rollout.logits[t][agents] = logits
        rollout.values[t][agents] = values

    def _forward(self, rows: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        with torch.inference_mode():
            logits, values = self.module.policy_and_value(torch.from_numpy(rows))
        return logits.numpy(), values.numpy()

    def _count(self, ended: NDArray[np.bool_]) -> None:
        if ended.any():
            env = self.env
            assert env is not None
            self.outcomes["episodes"] += int(ended.sum())
            self.outcomes["successes"] += int((env.success[ended] > 0).sum())
            self.outcomes["valid"] += int((env.valid[ended] > 0).sum())
            self.outcomes["episode_steps"] += int(env.step_count[ended].sum())
