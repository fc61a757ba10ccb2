"""``PPOTrainee``: one policy shared by all agents, sampled from the native batch and learnt in the same process."""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from envtuning.trainees.base import Metrics, OnIteration, TrainingDiverged
from envtuning.trainees.ppo.learner import PPOLearner
from envtuning.trainees.ppo.network import AgentNetwork
from envtuning.trainees.ppo.options import PPOOptions
from envtuning.trainees.rllib.policy import SharedPolicy
from envtuning.trainees.rllib.rollout import Rollout, draw_actions
from envtuning.worlds.world import InfeasibleConfig, World
from mapf_frozenlake import GenerationError, LakeBatch, LakeConfig
from mapf_frozenlake.types import MAX_SIZE, Action
from mapf_frozenlake.world.layout import EgoLayout, checked_window

LATELY = 10  # iterations over which a call's rates and its gradient's norm are smoothed


class PPOTrainee:
    """A ``Trainee``: see there for what its methods promise; it is deterministic. ``options`` are ``PPOOptions``."""

    form = "acts"
    reports = frozenset({"success_rate", "valid_rate", "grad_norm", "loss", "entropy"})

    def __init__(
        self,
        *,
        room: Mapping[str, Any],
        world: World[Any] | None = None,
        exclude: Sequence[Any] = (),
        seed: int = 0,
        **options: Any,
    ) -> None:
        self.options = PPOOptions(**options)
        if world is not None and world.config_type is not LakeConfig:
            raise ValueError(f"it trains on lakes, not on {world.about.name}: name another trainee.kind")
        self.env_kwargs: dict[str, Any] = {
            "observation": "ego",
            "window": checked_window(self.options.window, room["max_size"]),
            "hints": self.options.hints,
            "max_size": room["max_size"],
            "max_agents": room["max_agents"],
        }
        self.exclude = list(exclude)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = AgentNetwork(EgoLayout(self.env_kwargs["window"], self.options.hints), self.options.hidden)
        self.learner = PPOLearner(self.network, self.options)
        self._env: LakeBatch | None = None

    @staticmethod
    def check_options(**options: Any) -> None:
        """Raises ``ValueError`` for options that are none; starts nothing."""
        checked_window(PPOOptions(**options).window, MAX_SIZE)

    def train(self, config: LakeConfig, budget: int, *, seed: int, on_iteration: OnIteration | None = None) -> Metrics:
        try:
            sampler = Sampler(self.network, self._lakes(config), self.options, seed)
        except GenerationError as error:
            raise InfeasibleConfig(str(error)) from error
        shuffle = torch.Generator().manual_seed(seed)
        history: list[Metrics] = []
        threads = torch.get_num_threads()
        torch.set_num_threads(self.options.torch_threads)
        try:
            while sum(done["env_steps"] for done in history) < budget:
                experience, outcomes = sampler.sample()
                history.append(outcomes | self.learner.learn(experience, shuffle))
                if on_iteration is not None:
                    on_iteration(history[-1])  # first, so that the steps of a divergence are charged too
                self._check_finite(history[-1])
        finally:
            torch.set_num_threads(threads)
        return summary(history)

    def _lakes(self, config: LakeConfig) -> LakeBatch:
        if self._env is None:
            self._env = LakeBatch(
                num_envs=self.options.num_envs, config=config, exclude=self.exclude, **self.env_kwargs
            )
        self._env.set_config(config)
        return self._env

    def _check_finite(self, metrics: Metrics) -> None:
        weights = all(bool(torch.isfinite(weight).all()) for weight in self.network.parameters())
        if not (weights and math.isfinite(metrics["loss"]) and math.isfinite(metrics["grad_norm"])):
            raise TrainingDiverged(
                "loss, gradient or weights left the finite numbers: go on from the last checkpoint with a lower learning "
                f"rate (lr={self.options.lr}) or a smaller grad_clip ({self.options.grad_clip})"
            )

    def policy(self) -> SharedPolicy:
        """The policy as it is now, a copy; acts at ``options.temperature``."""
        return SharedPolicy(copy.deepcopy(self.network), self.env_kwargs, temperature=self.options.temperature)

    def save(self, folder: Path) -> None:
        """Weights and optimiser. There is no random state to keep: each ``train`` call is seeded."""
        state = {"network": self.network.state_dict(), "optimiser": self.learner.optimiser.state_dict()}
        torch.save(state, folder / "learner.pt")

    def load(self, folder: Path) -> None:
        state = torch.load(folder / "learner.pt", weights_only=True)
        self.network.load_state_dict(state["network"])
        self.learner.optimiser.load_state_dict(state["optimiser"])

    def close(self) -> None:
        """Nothing to give back."""


class Sampler:
    """Rollouts of the native batch by the network as it is at the time; all randomness is the seed's."""

    def __init__(self, network: AgentNetwork, env: LakeBatch, options: PPOOptions, seed: int) -> None:
        self.network, self.env, self.options = network, env, options
        own = np.random.SeedSequence(seed)
        self._random = np.random.default_rng(own)
        env.seed(own.generate_state(env.num_envs, np.uint32).astype(np.int64))
        self._rollout = Rollout.empty(options.rollout, env.num_envs, env.max_agents, env.layout.size)
        self._rollout.rows[-1] = env.reset()

    def sample(self) -> tuple[dict[str, NDArray], Metrics]:
        """``rollout`` steps in each lake from where the last ones ended: experience with advantages, and what came of it."""
        rollout, env = self._rollout, self.env
        counts: dict[str, float] = defaultdict(float)
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
            if ended.any():
                counts["episodes"] += int(ended.sum())
                counts["success_rate"] += int((env.success[ended] > 0).sum())
                counts["valid_rate"] += int((env.valid[ended] > 0).sum())
                counts["episode_length"] += int(env.step_count[ended].sum())
        rollout.values[-1][env.active] = self._forward(rollout.rows[-1][env.active])[1]
        steps = float(rollout.moved.sum())
        episodes = counts["episodes"]
        means = {name: counts[name] / max(1.0, episodes) for name in ("success_rate", "valid_rate", "episode_length")}
        reward = float(rollout.rewards.sum() / rollout.active.sum(axis=2).mean()) / steps
        outcomes = {"env_steps": steps, "episodes": episodes, **means, "reward": reward}
        return rollout.experience(self.options.gamma, self.options.gae_lambda), outcomes

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
        rollout.values[t][agents] = values

    def _forward(self, rows: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        with torch.inference_mode():
            logits, values = self.network.policy_and_value(torch.from_numpy(rows))
        return logits.numpy(), values.numpy()


def summary(history: list[Metrics]) -> Metrics:
    """A call's metrics: sums of what is counted, rates over its last iterations, the gradient smoothed."""
    late = history[-LATELY:]
    episodes = max(1.0, sum(done["episodes"] for done in late))
    found = dict(history[-1])
    for name in ("success_rate", "valid_rate"):
        found[name] = sum(done[name] * done["episodes"] for done in late) / episodes
    found["grad_norm"] = sum(done["grad_norm"] for done in late) / len(late)
    for name in ("env_steps", "episodes"):
        found[name] = sum(done[name] for done in history)
    return found
