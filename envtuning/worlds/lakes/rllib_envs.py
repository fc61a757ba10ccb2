"""The lake for stock RLlib: by ``register_env`` in each of the three forms that RLlib samples from.

    register_lakes()
    PPOConfig().environment("lakes", env_config={"size": 5, "num_agents": 2}).env_runners(
        gym_env_vectorize_mode="vector_entry_point", num_envs_per_env_runner=64)      # one controller of all agents, native
    PPOConfig().environment("lake-agents", env_config={…}).multi_agent(…)             # RLlib's MultiAgentEnv
    PPOConfig().environment("lake-pettingzoo", env_config={…}).multi_agent(…)         # PettingZoo under RLlib's wrapper

``env_config`` is what ``gym.make`` takes. All three have ``set_config`` underneath, so ``RLlibCurriculumCallback`` works.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from pettingzoo.utils import BaseParallelWrapper
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv
from ray.tune.registry import register_env

from mapf_frozenlake import LakeConfig, parallel_env

AgentDict = dict[str, Any]


def register_lakes() -> None:
    """Make "lakes", "lake-agents" and "lake-pettingzoo" known to RLlib, on remote EnvRunners too."""
    register_env("lakes", lake_or_lakes)
    register_env("lake-agents", LakeMultiAgentEnv)
    register_env(
        "lake-pettingzoo", lambda env_config: ParallelPettingZooEnv(ObservationOnly(parallel_env(**env_config)))
    )


def lake_or_lakes(env_config: dict[str, Any]) -> gym.Env | gym.vector.VectorEnv:
    """One lake, or the native vector form where RLlib says how many: observations flat, for RLlib's default networks."""
    settings = dict(env_config)
    num_envs = settings.pop("num_envs", None)
    if num_envs is None:
        return gym.wrappers.FlattenObservation(gym.make("MAPFFrozenLake-v0", **settings))
    return gym.wrappers.vector.FlattenObservation(gym.make_vec("MAPFFrozenLake-v0", num_envs=num_envs, **settings))


class ObservationOnly(BaseParallelWrapper):
    """PettingZoo's lake without the mask beside the observation: the "ego" form has it inside."""

    def observation_space(self, agent: str) -> gym.Space:
        return self.env.observation_space(agent)["observation"]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[AgentDict, AgentDict]:
        observations, infos = self.env.reset(seed=seed, options=options)
        return _only_observation(observations), infos

    def step(self, actions: AgentDict) -> tuple[AgentDict, AgentDict, AgentDict, AgentDict, AgentDict]:
        observations, *rest = self.env.step(actions)
        return _only_observation(observations), *rest


def _only_observation(observations: AgentDict) -> AgentDict:
    return {agent: seen["observation"] for agent, seen in observations.items()}


class LakeMultiAgentEnv(MultiAgentEnv):
    """RLlib's multi-agent form; an episode may fill fewer than all slots."""

    def __init__(self, env_config: dict[str, Any] | None = None) -> None:
        self.lake = ObservationOnly(parallel_env(**(env_config or {})))
        super().__init__()
        self.possible_agents = list(self.lake.possible_agents)
        self.observation_spaces = {agent: self.lake.observation_space(agent) for agent in self.possible_agents}
        self.action_spaces = {agent: self.lake.action_space(agent) for agent in self.possible_agents}

    @property
    def agents(self) -> list[str]:
        return self.lake.agents

    @agents.setter
    def agents(self, value: list[str]) -> None:
        """RLlib's base class sets what the lake knows better."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[AgentDict, AgentDict]:
        return self.lake.reset(seed=seed, options=options)

    def step(self, action_dict: AgentDict) -> tuple[AgentDict, AgentDict, AgentDict, AgentDict, AgentDict]:
        observations, rewards, terminated, truncated, infos = self.lake.step(action_dict)
        terminated["__all__"] = all(terminated.values())
        truncated["__all__"] = all(truncated.values())
        return observations, rewards, terminated, truncated, infos

    def set_config(self, config: LakeConfig) -> None:
        """Draw and rule by this config from the next reset on; the spaces stay."""
        self.lake.unwrapped.set_config(config)

    def get_config(self) -> LakeConfig:
        return self.lake.unwrapped.get_config()
