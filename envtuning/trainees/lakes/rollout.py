"""``Rollout``: experience as arrays, with the returns and advantages that PPO learns from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mapf_frozenlake.types import NUM_ACTIONS


@dataclass
class Rollout:
    """``length`` steps of ``num_envs`` lakes with ``num_agents`` slots each. It is written step by step, then read as a whole.

    At step t the agents see ``rows[t]``, act, and get ``rewards[t]``. An episode that ended at t is replaced at t + 1: in that
    step no agent moves (``moved`` is False), and it does not count as experience.
    """

    rows: NDArray[np.float32]  # [length + 1, num_envs, num_agents, row]
    actions: NDArray[np.int64]  # [length, num_envs, num_agents]
    log_probs: NDArray[np.float32]  # [length, num_envs, num_agents], of the action taken
    logits: NDArray[np.float32]  # [length, num_envs, num_agents, NUM_ACTIONS]
    values: NDArray[np.float32]  # [length + 1, num_envs, num_agents]
    rewards: NDArray[np.float32]  # [length, num_envs, num_agents]
    active: NDArray[np.bool_]  # [length, num_envs, num_agents]: slots that hold an agent
    moved: NDArray[np.bool_]  # [length, num_envs]
    terminated: NDArray[np.bool_]  # [length, num_envs]
    ended: NDArray[np.bool_]  # [length, num_envs]: terminated or truncated

    @classmethod
    def empty(cls, length: int, num_envs: int, num_agents: int, row: int) -> Rollout:
        slots = (num_envs, num_agents)
        return cls(
            rows=np.zeros((length + 1, *slots, row), np.float32),
            actions=np.zeros((length, *slots), np.int64),
            log_probs=np.zeros((length, *slots), np.float32),
            logits=np.zeros((length, *slots, NUM_ACTIONS), np.float32),
            values=np.zeros((length + 1, *slots), np.float32),
            rewards=np.zeros((length, *slots), np.float32),
            active=np.zeros((length, *slots), np.bool_),
            moved=np.zeros((length, num_envs), np.bool_),
            terminated=np.zeros((length, num_envs), np.bool_),
            ended=np.zeros((length, num_envs), np.bool_),
        )

    def __len__(self) -> int:
        return len(self.actions)

    def advantages(self, gamma: float, lambda_: float) -> NDArray[np.float32]:
        """float32[length, num_envs, num_agents]: GAE(γ, λ) of every step."""
        return generalised_advantages(self.rewards, self.values, self.terminated, self.ended, gamma, lambda_)

    def experience(self, gamma: float, lambda_: float) -> dict[str, NDArray]:
        """The steps in which an agent moved, as flat arrays, with advantages and value targets. The arrays are copies."""
        advantages = self.advantages(gamma, lambda_)
        targets = advantages + self.values[:-1]
        chosen = np.flatnonzero(self.active & self.moved[:, :, None])

        def flat(array: NDArray) -> NDArray:
            return array.reshape(-1, *array.shape[3:]).take(chosen, axis=0)

        return {
            "obs": flat(self.rows[:-1]),
            "actions": flat(self.actions),
            "action_logp": flat(self.log_probs),
            "action_dist_inputs": flat(self.logits),
            "advantages": flat(advantages),
            "value_targets": flat(targets),
        }


@njit(cache=True)
def generalised_advantages(rewards, values, terminated, ended, gamma, lambda_):
    """GAE(γ, λ): the value after a termination is 0; a truncated episode continues with the value of its last observation.

    rewards float32[T, n, A]; values float32[T + 1, n, A]; terminated, ended bool[T, n]; returns float32[T, n, A].
    """
    length, num_envs, num_agents = rewards.shape
    advantages = np.empty_like(rewards)
    for env in range(num_envs):
        for agent in range(num_agents):
            later = 0.0
            for t in range(length - 1, -1, -1):
                beyond = 0.0 if terminated[t, env] else values[t + 1, env, agent]
                surprise = rewards[t, env, agent] + gamma * beyond - values[t, env, agent]
                later = surprise if ended[t, env] else surprise + gamma * lambda_ * later
                advantages[t, env, agent] = later
    return advantages


@njit(cache=True)
def draw_actions(logits, draws):
    """One action per row by softmax of its logits, from one uniform draw per row; masked actions have chance 0.

    logits float32[n, k]; draws float32[n] in [0, 1); returns actions int64[n] and their log_probs float32[n].
    """
    num_rows, num_actions = logits.shape
    actions, log_probs = np.empty(num_rows, np.int64), np.empty(num_rows, np.float32)
    weights = np.empty(num_actions)
    for row in range(num_rows):
        top = logits[row, 0]
        for a in range(1, num_actions):
            top = max(top, logits[row, a])
        total = 0.0
        for a in range(num_actions):
            weights[a] = np.exp(logits[row, a] - top)
            total += weights[a]
        left = draws[row] * total
        chosen = -1
        for a in range(num_actions):
            if weights[a] > 0.0:
                chosen = a  # the last possible one, if rounding leaves a remainder
                left -= weights[a]
                if left < 0.0:
                    break
        actions[row] = chosen
        log_probs[row] = np.log(weights[chosen] / total)
    return actions, log_probs
