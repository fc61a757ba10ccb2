"""Gymnasium's vector interface, native: one kernel call, with the same bits as the same number of single envs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from mapf_frozenlake.config import LakeConfig
from mapf_frozenlake.envs.controller import CONTROLLER, Controller, Recordable
from mapf_frozenlake.envs.gym_env import understand_reset
from mapf_frozenlake.envs.lending import Lending
from mapf_frozenlake.envs.one_lake import TakesConfigs
from mapf_frozenlake.envs.options import Sizes, given_among, options_from
from mapf_frozenlake.envs.show import RENDER_FPS, RENDER_MODES, Recorder, make_recorder
from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.instance_set import InstanceSet
from mapf_frozenlake.map_families import MapFamily
from mapf_frozenlake.types import Certificate, Collisions, Instance, OnGoal
from mapf_frozenlake.world.batch import Autoreset, LakeBatch
from mapf_frozenlake.world.given import as_mask
from mapf_frozenlake.world.layers import ObservationName
from mapf_frozenlake.world.rewards import RewardFunction

_AUTORESET: dict[AutoresetMode, Autoreset] = {
    AutoresetMode.NEXT_STEP: "next_step",
    AutoresetMode.SAME_STEP: "same_step",
    AutoresetMode.DISABLED: "disabled",
}
_RENDER_MODES = tuple(mode for mode in RENDER_MODES if mode != "human")  # one window shows one lake
_OPTIMAL = np.array([False, True, None], dtype=object)  # indexed by the batch's code: 0, 1, -1


class MAPFFrozenLakeVectorEnv(TakesConfigs, Recordable, VectorEnv[NDArray, NDArray, NDArray]):
    """``num_envs`` lakes. Env i with reset seed s plays what a single env with seed s + i plays.

    The caller may keep observations: each is written to an array of its own. ``copy=False`` returns the
    batch's one array, which the next step overwrites: this takes less memory, for trainers that copy anyway.
    """

    metadata: dict[str, Any] = {"render_modes": list(_RENDER_MODES), "render_fps": RENDER_FPS}  # noqa: RUF012
    _recorders: Sequence[Recorder] = ()  # one per env, if there is a render_mode

    def __init__(
        self,
        num_envs: int = 1,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        render_mode: str | None = None,
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
        options = options_from(given_among(locals()), also=CONTROLLER)
        try:
            self.autoreset_mode = AutoresetMode(autoreset_mode)
        except ValueError:
            modes = [mode.value for mode in AutoresetMode]
            raise LakeError(f"autoreset_mode={autoreset_mode!r}: give one of {modes}") from None
        self.num_envs, self.copy, self.render_mode = num_envs, copy, render_mode
        self.metadata = type(self).metadata | {"autoreset_mode": self.autoreset_mode}
        self.batch = LakeBatch(num_envs=num_envs, autoreset=_AUTORESET[self.autoreset_mode], **options)
        self._all = np.ones(num_envs, np.bool_)
        self._lending = Lending(self.batch.observation) if copy else None
        recorders = [make_recorder(render_mode, _RENDER_MODES) for _ in range(num_envs)]
        self._recorders = [recorder for recorder in recorders if recorder is not None]
        self._controller = Controller(self.batch, flat=flat, discrete=discrete)
        self.single_observation_space = self._controller.observation_space
        self.single_action_space = self._controller.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[NDArray, dict[str, Any]]:
        """Begin an episode in every env, or in those of ``options["reset_mask"]``. ``instance`` and ``config`` as for one
        env; ``instance`` may also be a sequence, one for each env that is reset."""
        rest = dict(options or {})
        mask = rest.pop("reset_mask", None)
        instance, config = understand_reset(rest)
        if config is not None:
            self.batch.set_config(config)
        if seed is not None:
            self._seed(seed, mask)
        self._take_new_array()
        self.batch.reset(mask, instances=instance)
        if mask is not None and self.copy:
            self.batch.show()
        for env, recorder in enumerate(self._recorders):
            if mask is None or mask[env]:
                recorder.begin(self.batch.snapshot(env))
        return self._seen(), {}

    def _seed(self, seed: int | Sequence[int | None], mask: NDArray[np.bool_] | None) -> None:
        if isinstance(seed, int | np.integer):
            super().reset(seed=int(seed))
            self.batch.seed([int(seed) + env for env in range(self.num_envs)], mask)
            return
        if len(seed) != self.num_envs:
            raise LakeError(f"{len(seed)} seeds: give one for each of the {self.num_envs} envs")
        given = np.array([one is not None for one in seed])
        self.batch.seed(
            [0 if one is None else one for one in seed], given if mask is None else given & as_mask(mask, self.num_envs)
        )

    def step(self, actions: NDArray) -> tuple[NDArray, NDArray, NDArray, NDArray, dict[str, Any]]:
        batch = self.batch
        if self._controller.discrete:
            actions = np.asarray(actions)[:, None]
        moved = ~batch.finished if batch.num_finished else self._all  # next-step mode resets those that are finished
        before = self._take_new_array()
        try:
            result = batch.step(actions)
        except BaseException:  # a step that is refused has not happened
            batch.write_to(before)
            raise
        over = result.terminated | result.truncated
        for env, recorder in enumerate(self._recorders):
            if not moved[env] or (over[env] and self.autoreset_mode is AutoresetMode.SAME_STEP):
                recorder.begin(self.batch.snapshot(env))
            else:
                recorder.add(self.batch.snapshot(env, actions[env]))
        return self._seen(), batch.team_reward.copy(), result.terminated, result.truncated, self._info(moved, over)

    def _info(self, moved: NDArray[np.bool_], over: NDArray[np.bool_]) -> dict[str, Any]:
        """Infos as Gymnasium's sync vector env collects them: an array per key, and under ``_key`` the envs that have it."""
        batch = self.batch
        if not batch.num_ended:
            return self._events_of(moved)
        ended = over.nonzero()[0]  # most steps end few episodes, and their names alone are looked up
        success = batch.success & over
        outcome = {
            "success": success,
            "is_success": success,
            "valid": batch.valid & over,
            "score": batch.score * over,
            "optimal": self._of(ended, _OPTIMAL[batch.optimal[ended]]),
            "slice": self._of(ended, batch.slices_of(ended)),
            "failure": self._of(ended, batch.failures_of(ended)),
        } | dict.fromkeys(("_success", "_is_success", "_valid", "_score", "_optimal", "_slice", "_failure"), over)
        lifelong = batch.lifelong & over
        if np.count_nonzero(lifelong):  # in a tenth of the time of lifelong.any()
            outcome |= {"throughput": batch.throughput * lifelong, "_throughput": lifelong}
        if self.autoreset_mode is not AutoresetMode.SAME_STEP:
            return self._events_of(moved) | outcome
        assert batch.final_observation is not None
        final_obs = np.full(self.num_envs, None, dtype=object)
        for env, last_seen in zip(np.flatnonzero(over).tolist(), self._controller.seen(batch.final_observation)):
            final_obs[env] = last_seen
        final = {"final_obs": final_obs, "_final_obs": over, "_final_info": over}
        return self._events_of(~over) | final | {"final_info": outcome | self._events_of(over)}

    def _of(self, envs: NDArray[np.intp], values: NDArray[np.object_]) -> NDArray[np.object_]:
        """[num_envs]: the values of these envs, and None of all others."""
        found = np.empty(self.num_envs, dtype=object)  # NumPy fills it with None
        found[envs] = values
        return found

    def _events_of(self, whose: NDArray[np.bool_]) -> dict[str, Any]:
        """The step's events, zeros for envs outside ``whose``; nothing if ``whose`` is empty."""
        if whose is self._all:
            return {"events": self.batch.events.copy(), "_events": whose.copy()}
        return {"events": self.batch.events * whose[:, None], "_events": whose} if np.count_nonzero(whose) else {}

    def _seen(self) -> NDArray:
        return self._controller.seen(self.batch.observation)

    def _take_new_array(self) -> NDArray:
        """Write the next observation to an array that the caller does not hold; returns the last observation, unchanged."""
        new = None if self._lending is None else self._lending.array(in_use=id(self.batch.observation))
        before = self.batch.observation
        if new is not None and new is not before:
            self.batch.write_to(new)
        return before

    def action_masks(self) -> NDArray[np.bool_]:
        """bool[num_envs, A, 5] (bool[num_envs, 5] of a discrete action): False if an action leaves the board; in an
        empty slot only WAIT is True."""
        return self._controller.masks(self.batch.action_masks()).copy()

    @property
    def positions(self) -> NDArray[np.int16]:
        """[num_envs, A, 2]: row, col of every agent; -1 in empty slots."""
        return self.batch.positions

    @property
    def goals(self) -> NDArray[np.int16]:
        """[num_envs, A, 2]: row, col of every goal; -1 in empty slots."""
        return self.batch.goals

    @property
    def instances(self) -> InstanceSet:
        """The boards of the running episodes, one per env."""
        return InstanceSet.from_instances(self.batch.instance(env) for env in range(self.num_envs))

    def render(self) -> tuple[Any, ...] | None:
        if self.render_mode is None:
            raise LakeError("render_mode=None: make the envs with render_mode='ansi' or 'rgb_array' to render")
        return tuple(recorder.frame() for recorder in self._recorders)
