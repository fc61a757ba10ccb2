"""The interface of PyMARL's family (EPyMARL and what follows it): one Gymnasium env, a tuple entry and a reward for each agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from mapf_frozenlake.config import LakeConfig
from mapf_frozenlake.envs.controller import Recordable
from mapf_frozenlake.envs.options import Sizes, given_among
from mapf_frozenlake.envs.parallel_env import MAPFFrozenLakeParallelEnv, StateName
from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.map_families import MapFamily
from mapf_frozenlake.types import Certificate, Collisions, Instance, OnGoal
from mapf_frozenlake.world.layers import ObservationName
from mapf_frozenlake.world.rewards import RewardFunction

Seen = tuple[NDArray, ...]


class MAPFFrozenLakeTupleEnv(Recordable, gym.Env[Seen, Any]):
    """``MAPFFrozenLakeTuple-v0``: ``Tuple`` spaces and a list of rewards; every slot is an agent, even an empty one.

    Plays the same episodes as the PettingZoo interface with a fixed roster, and takes the same arguments but for ``fixed_roster`` and
    ``action_mask``. ``n_agents``, ``action_masks`` and ``state`` are public; ``info`` has Gymnasium's outcome when the episode is over,
    and the events of every step.
    """

    metadata: dict[str, Any] = dict(MAPFFrozenLakeParallelEnv.metadata)  # noqa: RUF012

    def __init__(
        self,
        render_mode: str | None = None,
        *,
        state: StateName = "observations",
        max_cycles: int | None = None,
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
        fixed = {"fixed_roster": True, "action_mask": None}
        if refused := sorted(fixed.keys() & given.keys()):
            raise LakeError(
                f"{refused[0]}: every slot is an agent here, and action_masks() has the masks: leave it out"
            )
        self.lake = MAPFFrozenLakeParallelEnv(render_mode, state=state, max_cycles=max_cycles, **given | fixed)
        self.render_mode = render_mode
        self._names = self.lake.possible_agents
        self.n_agents = len(self._names)
        self.observation_space = spaces.Tuple([self.lake.observation_space(name) for name in self._names])
        self.action_space = spaces.Tuple([self.lake.action_space(name) for name in self._names])

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Seen, dict[str, Any]]:
        super().reset(seed=seed)
        observations, _ = self.lake.reset(seed=seed, options=options)
        return self._in_order(observations), {}

    def step(self, action: Sequence[int]) -> tuple[Seen, Any, bool, bool, dict[str, Any]]:
        if len(action) != self.n_agents:
            raise LakeError(f"{len(action)} actions: give one for each of the {self.n_agents} agents")
        observations, rewards, terminated, truncated, infos = self.lake.step(dict(zip(self._names, action)))
        info: dict[str, Any] = {name: value for name, value in infos[self._names[0]].items() if name != "event"}
        info["events"] = np.array([infos[name]["event"] for name in self._names], np.int8)
        paid = [rewards[name] for name in self._names]
        return self._in_order(observations), paid, any(terminated.values()), any(truncated.values()), info

    def _in_order(self, by_name: Mapping[str, Any]) -> Seen:
        return tuple(by_name[name] for name in self._names)

    def action_masks(self) -> NDArray[np.bool_]:
        """bool[A, 5]: False if an action leaves the board; in an empty slot only WAIT is True."""
        return self.lake.batch.action_masks()[0]

    def state(self) -> NDArray:
        """The ``state`` of the PettingZoo interface."""
        return self.lake.state()

    def set_config(self, config: LakeConfig | Mapping[str, Any]) -> None:
        """Use this config from the next reset on; the spaces stay."""
        self.lake.set_config(config)

    def get_config(self) -> LakeConfig:
        return self.lake.get_config()

    def render(self) -> Any:
        return self.lake.render()

    def close(self) -> None:
        self.lake.close()
