"""Lakes for stock RLlib, registered by ``register_env`` for each of the three interfaces that RLlib can sample.

    register_lakes()
    PPOConfig().environment("lakes", env_config={"size": 5, "num_agents": 2}).env_runners(
        gym_env_vectorize_mode="vector_entry_point", num_envs_per_env_runner=64)      # one controller of all agents, native
    PPOConfig().environment("lake-agents", env_config={…}).multi_agent(…)             # RLlib's MultiAgentEnv
    PPOConfig().environment("lake-pettingzoo", env_config={…}).multi_agent(…)         # PettingZoo under RLlib's wrapper

``env_config`` has the arguments of ``gym.make``. All three have a ``set_config``, so ``RLlibCurriculumCallback`` works.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv
from ray.tune.registry import register_env

from mapf_frozenlake import LakeConfig, parallel_env
from mapf_frozenlake.envs.parallel_env import MAPFFrozenLakeParallelEnv
from mapf_frozenlake.envs.registration import ENV_ID

AgentDict = dict[str, Any]


def register_lakes() -> None:
    """Register "lakes" (Gymnasium), "lake-agents" and "lake-pettingzoo" with RLlib, also for remote EnvRunners."""
    register_env("lakes", lake_or_lakes)
    register_env(ENV_ID, lake_or_lakes)
    register_env("lake-agents", LakeMultiAgentEnv)
    register_env("lake-pettingzoo", lake_of_pettingzoo)


def lake_or_lakes(env_config: dict[str, Any]) -> gym.Env | gym.vector.VectorEnv:
    """One lake, or the native vector interface if RLlib asks for several. Observations are flat, for RLlib's default networks."""
    settings = dict(env_config)
    num_envs = settings.pop("num_envs", None)
    settings["flat"] = True
    if num_envs is None:
        return gym.make(ENV_ID, **settings)
    return gym.make_vec(ENV_ID, num_envs=num_envs, **settings)


def lake_of_pettingzoo(env_config: dict[str, Any]) -> ParallelPettingZooEnv:
    """PettingZoo's lake in RLlib's wrapper, which needs the same agents in every episode: ``fixed_roster`` is on by default."""
    return ParallelPettingZooEnv(_without_masks({"fixed_roster": True} | dict(env_config)))


def _without_masks(env_config: Mapping[str, Any]) -> MAPFFrozenLakeParallelEnv:
    """Observations are arrays instead of dicts: RLlib's default networks take no masks, and "ego" observations contain them."""
    return parallel_env(**({"action_mask": None} | dict(env_config)))


class LakeMultiAgentEnv(MultiAgentEnv):
    """RLlib's multi-agent interface. An episode may leave slots empty. ``agents`` are those of the last episode until reset."""

    def __init__(self, env_config: dict[str, Any] | None = None) -> None:
        self.lake = _without_masks(env_config or {})
        super().__init__()
        self.agents: list[str] = []
        self.possible_agents = list(self.lake.possible_agents)
        self.observation_spaces = {agent: self.lake.observation_space(agent) for agent in self.possible_agents}
        self.action_spaces = {agent: self.lake.action_space(agent) for agent in self.possible_agents}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[AgentDict, AgentDict]:
        observations, infos = self.lake.reset(seed=seed, options=options)
        self.agents = list(self.lake.agents)
        return observations, infos

    def step(self, action_dict: AgentDict) -> tuple[AgentDict, AgentDict, AgentDict, AgentDict, AgentDict]:
        observations, rewards, terminated, truncated, infos = self.lake.step(action_dict)
        over = not self.lake.agents  # in the last step, some agents may leave the board while others run out of time
        truncated["__all__"] = over and any(truncated.values())
        terminated["__all__"] = over and not truncated["__all__"]
        return observations, rewards, terminated, truncated, infos

    def set_config(self, config: LakeConfig) -> None:
        """Use this config from the next reset on; the spaces stay the same."""
        self.lake.set_config(config)

    def get_config(self) -> LakeConfig:
        return self.lake.get_config()
