"""The agents of many lakes as one batch. For a trainer with shared parameters, every agent slot is an env."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from mapf_frozenlake.config import LakeConfig
from mapf_frozenlake.envs.controller import CONTROLLER
from mapf_frozenlake.envs.one_lake import TakesConfigs
from mapf_frozenlake.envs.options import Sizes, given_among
from mapf_frozenlake.envs.vector_env import MAPFFrozenLakeVectorEnv
from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.map_families import MapFamily
from mapf_frozenlake.types import NUM_ACTIONS, Certificate, Collisions, Instance, OnGoal
from mapf_frozenlake.world.layers import ObservationName
from mapf_frozenlake.world.layout import space_of
from mapf_frozenlake.world.rewards import RewardFunction


def parallel_vec_env(
    num_lakes: int | None = None, *, num_envs: int | None = None, **kwargs: Any
) -> MAPFFrozenLakeAgentsVectorEnv:
    """The agents of ``num_lakes`` lakes as one Gymnasium vector env; arguments are those of ``gym.make_vec``,
    except ``flat`` and ``discrete``.

    ``num_envs`` is ``make_vec``'s name for the number of lakes; the result has a row for every agent of each lake.
    """
    if num_lakes is not None and num_envs is not None:
        raise LakeError(f"num_lakes={num_lakes} and num_envs={num_envs} mean the same: give one of them")
    lakes = num_lakes if num_lakes is not None else num_envs
    return MAPFFrozenLakeAgentsVectorEnv(1 if lakes is None else lakes, **kwargs)


class MAPFFrozenLakeAgentsVectorEnv(TakesConfigs, VectorEnv[NDArray, NDArray, NDArray]):
    """``num_lakes`` lakes of A slots as ``num_envs = num_lakes · A`` rows: row ``lake · A + slot``.

    The agents of a lake begin and end together. ``info["active"]`` is False in the rows of empty slots: they see zeros and get
    reward 0. Leave them out of means and losses, and also the rows of a lake that this step only reset (``info["moved"]`` is
    False). ``active`` belongs to the observation: after a same-step reset, the rewards are those of the agents before it.
    """

    metadata = MAPFFrozenLakeVectorEnv.metadata

    def __init__(
        self,
        num_lakes: int = 1,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        render_mode: str | None = None,
        size: Sizes | None = None,
        num_agents: int | Mapping[int, float] | None = None,
        hole_ratio: float | None = None,
        wait_ratio: float | None = None,
        min_distance: int | None = None,
        map_family: MapFamily | None = None,
        loops: float | None = None,
        room_size: int | None = None,
        shelf_length: int | None = None,
        aisle: int | None = None,
        config: LakeConfig | Mapping[str, Any] | str | None = None,
        desc: str | Sequence[str] | None = None,
        instance: Instance | Mapping[str, Any] | str | None = None,
        is_slippery: bool | None = None,
        success_rate: float | None = None,
        on_goal: OnGoal | None = None,
        collisions: Collisions | None = None,
        horizon: int | None = None,
        reward: str | RewardFunction | None = None,
        feedback: bool | None = None,
        hint_strength: float | None = None,
        observation: ObservationName = "ego",
        dtype: str = "float32",
        max_size: int | None = None,
        max_agents: int | None = None,
        window: int | None = None,
        hints: bool = False,
        pool_size: int | None = None,
        certify: Certificate | None = None,
        exclude: Any = None,
        num_threads: int | None = 1,
        **unknown: Any,
    ) -> None:
        given = given_among(locals())
        for name in CONTROLLER:
            if unknown.get(name):
                raise LakeError(
                    f"{name}=True is for one controller of all agents (gym.make, gym.make_vec, sb3_vec_env without "
                    f"per_agent): leave it out here, where every agent is a row of its own with Discrete({NUM_ACTIONS})"
                )
        self._lakes = MAPFFrozenLakeVectorEnv(
            num_lakes, autoreset_mode=autoreset_mode, copy=copy, render_mode=render_mode, **given
        )
        self.batch = self._lakes.batch
        self.metadata, self.render_mode = dict(self._lakes.metadata), self._lakes.render_mode
        self.num_lakes, self.num_agents = num_lakes, self.batch.max_agents
        self.num_envs = num_lakes * self.num_agents
        self.single_observation_space = space_of(
            self.batch.observation_name, self.batch.observation.shape[2:], self.batch.dtype
        )
        self.single_action_space = spaces.Discrete(NUM_ACTIONS)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[NDArray, dict[str, Any]]:
        """Begin an episode in every lake, or in those with a True row in ``options["reset_mask"]`` (bool[num_envs]).

        Lake i gets seed + i, or ``seed[i]`` of one seed per lake. Other options are the vector env's.
        """
        rest = dict(options or {})
        if rest.get("reset_mask") is not None:
            rest["reset_mask"] = self._by_lake("reset_mask", rest["reset_mask"]).any(axis=1)
        observation, _ = self._lakes.reset(seed=seed, options=rest)
        moved = np.ones(self.num_envs, np.bool_)
        return self._rows(observation), {"active": self.batch.active.reshape(-1), "moved": moved}

    def step(self, actions: NDArray) -> tuple[NDArray, NDArray, NDArray, NDArray, dict[str, Any]]:
        joint = self._by_lake("actions", actions)
        moved = ~self.batch.finished
        observation, _, terminated, truncated, info = self._lakes.step(joint)
        rows = self._info_rows(info) | {
            "active": self.batch.active.reshape(-1),
            "moved": np.repeat(moved, self.num_agents),
        }
        return (
            self._rows(observation),
            self.batch.rewards.reshape(-1).copy(),
            np.repeat(terminated, self.num_agents),
            np.repeat(truncated, self.num_agents),
            rows,
        )

    def _by_lake(self, name: str, rows: Any) -> NDArray:
        given = np.asarray(rows)
        if given.size != self.num_envs:
            raise LakeError(
                f"{name} of shape {given.shape}: give ({self.num_envs},), one for each agent slot of each lake"
            )
        return given.reshape(self.num_lakes, self.num_agents)

    def _rows(self, by_lake: NDArray) -> NDArray:
        return by_lake.reshape(self.num_envs, *by_lake.shape[2:])

    def _info_rows(self, info: Mapping[str, Any]) -> dict[str, Any]:
        """The lakes' infos, row by row."""
        rows: dict[str, Any] = {}
        for key, column in info.items():
            if isinstance(column, dict):
                rows[key] = self._info_rows(column)
            elif key == "events":
                rows[key] = column.reshape(-1)
            elif key == "final_obs":
                rows[key] = np.full(self.num_envs, None, dtype=object)
                for lake in np.flatnonzero(info["_final_obs"]):
                    for slot in range(self.num_agents):
                        rows[key][lake * self.num_agents + slot] = column[lake][slot]
            else:
                rows[key] = np.repeat(column, self.num_agents)
        return rows

    def action_masks(self) -> NDArray[np.bool_]:
        """bool[num_envs, 5]: False if an action leaves the board; in an empty slot only WAIT is True."""
        return self._rows(self.batch.action_masks()).copy()

    def render(self) -> tuple[Any, ...] | None:
        """A picture or text for each lake."""
        return self._lakes.render()
