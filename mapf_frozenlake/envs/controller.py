"""One controller of all agents, single or in a vector: its spaces, and the arguments that it was made with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from numpy.typing import NDArray

from mapf_frozenlake.envs.options import in_json_types
from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.types import NUM_ACTIONS
from mapf_frozenlake.world.batch import LakeBatch
from mapf_frozenlake.world.layout import space_of

CONTROLLER = ("flat", "discrete")  # arguments of the Gymnasium interfaces alone


class Controller:
    """Spaces of the Gymnasium interfaces, and conversions between them and the batch's arrays.

    ``flat`` observations are [A · …] instead of [A, …]; with ``discrete``, the action of a single agent is one number.
    """

    def __init__(self, batch: LakeBatch, *, flat: bool, discrete: bool) -> None:
        if discrete and batch.max_agents != 1:
            raise LakeError(
                f"discrete=True with {batch.max_agents} agents: one number moves one agent; make the env with num_agents=1 "
                f"(and max_agents=1), or use parallel_env, where every agent has Discrete({NUM_ACTIONS})"
            )
        shape = batch.observation.shape[1:]
        self._seen = (int(np.prod(shape)),) if flat else shape
        self.flat, self.discrete = flat, discrete
        self.observation_space = space_of(batch.observation_name, self._seen, batch.dtype)
        self.action_space: spaces.Space = (
            spaces.Discrete(NUM_ACTIONS) if discrete else spaces.MultiDiscrete([NUM_ACTIONS] * batch.max_agents)
        )

    def seen(self, observation: NDArray) -> NDArray:
        """A view of observations [n, A, …] as this controller sees them."""
        return observation.reshape(len(observation), *self._seen) if self.flat else observation

    def masks(self, masks: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """bool[n, A, 5], or bool[n, 5] of a discrete action."""
        return masks[:, 0] if self.discrete else masks


class Recordable:
    """An env whose ``spec`` can be written as JSON, so that the same env can be made from a record."""

    _spec: EnvSpec | None = None

    @property
    def spec(self) -> EnvSpec | None:
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        self._spec = None if spec is None else replace(spec, kwargs=in_json_types(spec.kwargs))


def outcome(batch: LakeBatch, env: int = 0) -> dict[str, Any]:
    """The entries of ``info`` for a finished episode."""
    success, optimal = batch.success.item(env), batch.optimal.item(env)
    told = {
        "success": success,
        "is_success": success,  # Stable-Baselines3's name
        "valid": batch.valid.item(env),
        "score": batch.score.item(env),
        "optimal": None if optimal < 0 else bool(optimal),
        "slice": batch.slice_of(env),
        "failure": batch.failure_of(env),
    }
    if batch.was_lifelong(env):
        told["throughput"] = batch.throughput.item(env)
    return told
