"""``LakeSampler``: rollouts of the native batch. One forward pass and one kernel call move every agent of every lake."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from envtuning.trainees.base import Metrics
from envtuning.trainees.lakes.options import LakeOptions
from envtuning.trainees.lakes.rollout import Rollout, draw_actions
from mapf_frozenlake.types import Action
from mapf_frozenlake.world.batch import LakeBatch


class Decides(Protocol):
    """A network as sampling uses it."""

    def policy_and_value(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """float32[n, EgoLayout.size] → masked logits [n, NUM_ACTIONS], values [n]."""
        ...


class Ended(NamedTuple):
    """Episodes that ended, in their order."""

    slices: NDArray[np.object_]  # [n]
    valid: NDArray[np.bool_]  # [n]
    scores: NDArray[np.float64]  # [n]
    failures: NDArray[np.object_]  # [n]: kinds; None if valid
    boards: NDArray[np.uint64]  # [n]: hashes, equal for equal boards


NONE = Ended(*(np.empty(0, kind) for kind in (object, np.bool_, np.float64, object, np.uint64)))


def just_ended(env: LakeBatch, rows: NDArray[np.bool_]) -> Ended:
    """The episodes that the last step ended, in these envs."""
    return Ended(env.slices[rows], env.valid[rows], env.score[rows], env.failures[rows], env.board_hashes[rows])


def joined(parts: Iterable[Ended]) -> Ended:
    return Ended(*map(np.concatenate, zip(NONE, *parts, strict=True)))


class LakeSampler:
    """Plays a batch of lakes from a fresh start, ``length`` steps a rollout. Its samples depend only on weights, config and seed."""

    def __init__(self, env: LakeBatch, length: int, *seed: int) -> None:
        self.env = env
        source = np.random.SeedSequence(seed)
        self._random = np.random.default_rng(source)
        env.seed(source.generate_state(env.num_envs, np.uint32).astype(np.int64))
        self.rollout = Rollout.empty(length, env.num_envs, env.max_agents, env.layout.size)
        self.rollout.rows[-1] = env.reset()
        self.ended = NONE  # in the last rollout

    def sample(self, network: Decides) -> tuple[Rollout, dict[str, float]]:
        """``length`` further steps in each lake, and the counts that ``as_metrics`` reads.

        The next call overwrites the rollout.
        """
        rollout, env = self.rollout, self.env
        counts: dict[str, float] = defaultdict(float)
        ended = rollout.ended[-1].copy()
        rollout.rows[0] = rollout.rows[-1]
        parts: list[Ended] = []
        for t in range(len(rollout)):
            rollout.active[t] = env.active
            rollout.moved[t] = ~ended  # an episode that has ended is replaced in this step
            self._decide(network, t)
            step = env.step(rollout.actions[t])
            rollout.rows[t + 1] = step.observation
            rollout.rewards[t] = step.rewards
            rollout.terminated[t] = step.terminated
            ended = rollout.ended[t] = (step.terminated | step.truncated).astype(np.bool_)
            if ended.any():
                counts["episodes"] += int(ended.sum())
                counts["successes"] += int((env.success[ended] > 0).sum())
                counts["valid"] += int((env.valid[ended] > 0).sum())
                counts["episode_steps"] += int(env.step_count[ended].sum())
                parts.append(just_ended(env, ended))
        self.ended = joined(parts)
        rollout.values[-1][env.active] = _forward(network, rollout.rows[-1][env.active])[1]
        counts["env_steps"] = int(rollout.moved.sum())
        counts["reward"] = float(rollout.rewards.sum() / rollout.active.sum(axis=2).mean())
        return rollout, counts

    def experience(self, network: Decides, options: LakeOptions) -> tuple[dict[str, NDArray], dict[str, float]]:
        """A rollout in the form that PPO learns from, and its counts."""
        rollout, counts = self.sample(network)
        return rollout.experience(options.gamma, options.gae_lambda), counts

    def _decide(self, network: Decides, t: int) -> None:
        """Draw the actions of step t, and store the network's outputs for them."""
        rollout = self.rollout
        agents = rollout.active[t]
        logits, values = _forward(network, rollout.rows[t][agents])
        actions, log_probs = draw_actions(logits, self._random.random(len(logits), dtype=np.float32))
        rollout.actions[t] = int(Action.WAIT)
        rollout.actions[t][agents] = actions
        rollout.log_probs[t][agents] = log_probs
        rollout.logits[t][agents] = logits
        rollout.values[t][agents] = values


def _forward(network: Decides, rows: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    with torch.inference_mode():
        logits, values = network.policy_and_value(torch.from_numpy(rows))
    return logits.numpy(), values.numpy()


def as_metrics(counts: dict[str, float]) -> Metrics:
    """The metrics of a rollout, or of several whose counts were added up."""
    episodes = max(1, counts["episodes"])
    return {
        "env_steps": float(counts["env_steps"]),
        "episodes": float(counts["episodes"]),
        "success_rate": counts["successes"] / episodes,
        "valid_rate": counts["valid"] / episodes,
        "episode_length": counts["episode_steps"] / episodes,
        "reward": counts["reward"] / max(1, counts["env_steps"]),  # per env step, the agents' mean
    }
