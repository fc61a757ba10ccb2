"""The Gymnasium interface: one controller moves all agents and is paid the team's mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.config import LakeConfig
from mapf_frozenlake.envs.controller import CONTROLLER, Controller, Recordable, outcome
from mapf_frozenlake.envs.one_lake import OneLake
from mapf_frozenlake.envs.options import Sizes, as_config, as_instance, given_among, options_from
from mapf_frozenlake.envs.show import RENDER_FPS, RENDER_MODES, make_recorder
from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.map_families import MapFamily
from mapf_frozenlake.types import Certificate, Collisions, Instance, OnGoal
from mapf_frozenlake.world.batch import LakeBatch
from mapf_frozenlake.world.layers import ObservationName
from mapf_frozenlake.world.rewards import RewardFunction

RESET_OPTIONS = ("instance", "config")
WRAPPERS_OPTIONS = ("minari_autoseed",)  # attributes that wrappers read and forward


class MAPFFrozenLakeEnv(OneLake, Recordable, gym.Env[NDArray, Any]):
    """One lake. Observation [A, …] (row i is about agent i), action MultiDiscrete: 0 to 4 for every agent slot.

    With ``flat=True`` the observation is one vector; with ``discrete=True`` the action of a single agent is ``Discrete(5)``.
    ``info`` has the ``events`` of every step (int8[A], ``Event`` codes) and, when an episode is over, ``success`` (and
    ``is_success``, the same by another name), ``valid``, ``optimal`` (None if the least makespan is unknown or the world slips) and
    ``slice``, the name of the config's slice from which the board was drawn (None if it was given).

    Every interface takes these arguments; all are optional:

    boards         ``size`` (4), ``num_agents`` (2; a count, or a weight for each), ``hole_ratio`` (0.2), ``wait_ratio`` (None: left
                   to chance), ``min_distance`` (1), ``map_family`` ("random", "maze", "rooms" or "warehouse") with ``loops``,
                   ``room_size``, ``shelf_length``, ``aisle``; or ``config``; or one board for all episodes: ``desc`` or
                   ``instance``. Configs and instances also as JSON
    rules          ``on_goal`` ("wait", "finish" or "next"), ``is_slippery`` (False), ``success_rate`` (1/3), ``collisions`` ("block"), ``horizon`` (None: 4 · (rows +
                   columns)), ``reward`` ("sparse"; or a function of a ``rewards.Transition``), ``feedback`` (True),
                   ``hint_strength`` (1); each replaces the config's
    spaces         ``observation`` ("ego", "grid", "compact" or "pogema"), ``dtype`` ("float32" or "int8"), ``max_size``, ``max_agents``;
                   of "ego" and "pogema" also ``window``; of "ego" ``hints``
    the pool       ``pool_size`` (16,384), ``certify``, ``exclude`` (held-out boards)
    speed          ``num_threads`` (1) step a large batch; None: one per core
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": RENDER_FPS}  # noqa: RUF012

    def __init__(
        self,
        render_mode: str | None = None,
        *,
        flat: bool = False,
        discrete: bool = False,
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
        self._recorder = make_recorder(render_mode)
        self.render_mode = render_mode
        self.batch = LakeBatch(autoreset="disabled", **options_from(given_among(locals()), also=CONTROLLER))
        self._controller = Controller(self.batch, flat=flat, discrete=discrete)
        self.observation_space, self.action_space = self._controller.observation_space, self._controller.action_space
        self._bind()

    def _bind(self) -> None:
        """Views of the arrays that every step reads."""
        self._seen, self._events = self._controller.seen(self.batch.observation)[0], self.batch.events[0]
        self._team, self._terminated = self.batch.team_reward, self.batch.episode["terminated"]
        self._lead = (None, None) if self._controller.discrete else None  # converts an action to the batch's actions

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[NDArray, dict[str, Any]]:
        """Begin the next episode; with a seed, the first of that seed. Options: ``instance`` and ``config``, at once."""
        if seed is not None:
            super().reset(seed=seed)
            self.batch.seed([seed])
        instance = None
        if options:
            instance, config = understand_reset(options)
            if config is not None:
                self.batch.set_config(config)
        self.batch.reset(instances=instance)
        if self._recorder is not None:
            self._recorder.begin(self.snapshot())
        return self._seen.copy(), {}

    def step(self, action: Any) -> tuple[NDArray, float, bool, bool, dict[str, Any]]:
        batch = self.batch
        actions = np.asarray(action)[self._lead]
        batch.advance(actions)
        info: dict[str, Any] = {"events": self._events.copy()}
        terminated = truncated = False
        if batch.num_ended:
            terminated = bool(self._terminated[0])
            truncated = not terminated
            info |= outcome(batch)
        if self._recorder is not None:
            self._recorder.add(self.snapshot(actions[0]))
        return self._seen.copy(), float(self._team[0]), terminated, truncated, info

    def action_masks(self) -> NDArray[np.bool_]:
        """bool[A, 5] (bool[5] of a discrete action): False if it leaves the board; in an empty slot only WAIT is True."""
        return self._controller.masks(self.batch.action_masks())[0].copy()

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)
        self._bind()


def understand_reset(options: Mapping[str, Any] | None, *, strict: bool = True) -> tuple[Any, LakeConfig | None]:
    """(instances or None, config or None) of a reset's options; unknown ones are a ``LakeError`` if ``strict``.

    An instance or a config may be given as JSON.
    """
    if not options:
        return None, None
    unknown = sorted(set(options) - {*RESET_OPTIONS, *WRAPPERS_OPTIONS})
    if unknown and strict:
        raise LakeError(f"unknown reset option {unknown[0]!r}: known are {', '.join(RESET_OPTIONS)}")
    config, instance = options.get("config"), options.get("instance")
    if isinstance(instance, Instance | Mapping | str):
        instance = as_instance(instance)
    return instance, None if config is None else as_config(config)
