"""The ids that ``gym.make`` and ``gym.make_vec`` know."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

ENV_ID = "MAPFFrozenLake-v0"
TEXT_ENV_ID = "MAPFFrozenLakeText-v0"
TUPLE_ENV_ID = "MAPFFrozenLakeTuple-v0"
OTHER_FORMS = {
    TEXT_ENV_ID: "mapf_frozenlake.envs.text_env:MAPFFrozenLakeTextEnv",
    TUPLE_ENV_ID: "mapf_frozenlake.envs.tuple_env:MAPFFrozenLakeTupleEnv",
}
NAMED: dict[str, dict[str, Any]] = {  # the usual sizes
    ENV_ID: {},
    "MAPFFrozenLake4x4-v0": {"size": 4, "num_agents": 2, "hole_ratio": 0.2},
    "MAPFFrozenLake8x8-v0": {"size": 8, "num_agents": 4, "hole_ratio": 0.2},
    "MAPFFrozenLake16x16-v0": {"size": 16, "num_agents": 16, "hole_ratio": 0.1},
}


def register_envs() -> None:
    """Register every named id, once. The env itself counts the horizon and checks the order of calls and actions."""
    for name, kwargs in NAMED.items():
        if name not in gym.registry:
            gym.register(
                name,
                entry_point="mapf_frozenlake.envs.gym_env:MAPFFrozenLakeEnv",
                vector_entry_point="mapf_frozenlake.envs.vector_env:MAPFFrozenLakeVectorEnv",
                order_enforce=False,
                disable_env_checker=True,
                kwargs=kwargs,
            )
    for name, entry_point in OTHER_FORMS.items():
        if name not in gym.registry:
            gym.register(name, entry_point=entry_point, order_enforce=False, disable_env_checker=True)
