"""The PettingZoo interface: every agent has its own action, observation and reward. PettingZoo's own conversion makes AEC of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from mapf_frozenlake.config import LakeConfig
from mapf_frozenlake.envs.controller import outcome
from mapf_frozenlake.envs.global_state import compact_space, compact_state
from mapf_frozenlake.envs.gym_env import understand_reset
from mapf_frozenlake.envs.one_lake import OneLake
from mapf_frozenlake.envs.options import Sizes, given_among, options_from
from mapf_frozenlake.envs.show import RENDER_FPS, RENDER_MODES, make_recorder
from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.map_families import MapFamily
from mapf_frozenlake.types import NUM_ACTIONS, Action, Certificate, Collisions, Instance, OnGoal
from mapf_frozenlake.world.batch import LakeBatch
from mapf_frozenlake.world.given import as_actions
from mapf_frozenlake.world.layers import ObservationName
from mapf_frozenlake.world.layout import space_of
from mapf_frozenlake.world.rewards import RewardFunction

Observation = dict[str, NDArray] | NDArray
ActionMask = Literal["observation", "info"]
StateName = Literal["observations", "compact"]
PARALLEL = ("action_mask", "state", "fixed_roster", "max_cycles")  # arguments of this interface alone


class MAPFFrozenLakeParallelEnv(OneLake, ParallelEnv[str, Observation, int]):
    """One lake. The slots are the agents ``agent_0`` …; an episode fills the first of them.

    With "compact" observations an agent sees all agents' rows in one vector, its own first.

    Arguments besides those of every interface:

    action_mask   "observation": each agent sees ``{"observation", "action_mask"}``; "info": the mask is in its info, and it
                  sees an array; None: no mask
    fixed_roster  all slots are agents in every episode, for clients that need a fixed list: an empty slot sees zeros, may
                  only WAIT and gets reward 0
    state         the result of ``state()``: all "observations", or the lake as one "compact" vector
    max_cycles    PettingZoo's name for the horizon
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "mapf_frozenlake_v0", "render_modes": list(RENDER_MODES), "is_parallelizable": True,
        "render_fps": RENDER_FPS,
    }  # fmt: skip

    def __init__(
        self,
        render_mode: str | None = None,
        *,
        action_mask: ActionMask | None = "observation",
        fixed_roster: bool = False,
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
        if action_mask not in (None, *get_args(ActionMask)):
            raise LakeError(f"action_mask={action_mask!r}: give 'observation', 'info' or None")
        if state not in get_args(StateName):
            raise LakeError(f"state={state!r}: give one of {', '.join(map(repr, get_args(StateName)))}")
        if max_cycles is not None:
            if horizon is not None:
                raise LakeError(f"max_cycles={max_cycles} and horizon={horizon} mean the same: give one of them")
            given["horizon"] = max_cycles
        self._recorder = make_recorder(render_mode)
        self.render_mode, self.fixed_roster = render_mode, fixed_roster
        self._mask_in, self._state_name = action_mask, state
        self.batch = LakeBatch(autoreset="disabled", **options_from(given, also=PARALLEL))
        self.possible_agents = [f"agent_{slot}" for slot in range(self.batch.max_agents)]
        self._slots = {agent: slot for slot, agent in enumerate(self.possible_agents)}
        self.agents: list[str] = []
        shape = self.batch.observation.shape[2:]
        if self.batch.observation_name == "compact":
            shape = (self.batch.max_agents * shape[0],)
        one: spaces.Space = space_of(self.batch.observation_name, shape, self.batch.dtype)
        if action_mask == "observation":
            one = spaces.Dict({"observation": one, "action_mask": spaces.Box(0, 1, (NUM_ACTIONS,), np.int8)})
        self.observation_spaces: dict[str, spaces.Space] = dict.fromkeys(self.possible_agents, one)
        self.action_spaces: dict[str, spaces.Space] = {
            agent: spaces.Discrete(NUM_ACTIONS) for agent in self.possible_agents
        }
        every = self.batch.observation.shape[1:]
        self.state_space: spaces.Box = (
            compact_space(self.batch)
            if state == "compact"
            else space_of(self.batch.observation_name, every, self.batch.dtype)
        )

    def observation_space(self, agent: str) -> spaces.Space:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space:
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Begin the next episode; with a seed, the first of that seed. Options: ``instance`` and ``config``, at once."""
        if seed is not None:
            self.batch.seed([seed])
            self.np_random, self.np_random_seed = seeding.np_random(seed)
        instance, config = understand_reset(options, strict=False)  # PettingZoo lets wrappers add their own
        if config is not None:
            self.batch.set_config(config)
        self.batch.reset(instances=instance)
        count = self.batch.max_agents if self.fixed_roster else int(self.batch.active.sum())
        self.agents = self.possible_agents[:count]
        if self._recorder is not None:
            self._recorder.begin(self.snapshot())
        infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        return self._seen(infos), infos

    def step(
        self, actions: Mapping[str, int]
    ) -> tuple[dict[str, Observation], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """All agents move at once; an agent without an action waits."""
        unknown = sorted(set(actions) - set(self.agents))
        if unknown:
            raise LakeError(
                f"action for {unknown[0]!r}: live agents are {', '.join(self.agents) or 'none; call reset'}"
            )
        joint = np.full((1, self.batch.max_agents), Action.WAIT, np.int64)
        for agent, action in actions.items():
            joint[0, self._slots[agent]] = as_actions(action).item()
        _, rewards, terminated, truncated, events = self.batch.step(joint)
        live = {agent: self._slots[agent] for agent in self.agents}
        over = bool(terminated[0] or truncated[0])
        # Under on_goal="finish", an agent that has left the board is terminated before the others; in a fixed roster it stays.
        here = self.batch.active[0]
        left = {agent: not self.fixed_roster and not here[slot] for agent, slot in live.items()}
        came_of_it = outcome(self.batch) if over else {}
        infos = {agent: {"event": int(events[0, slot])} | came_of_it for agent, slot in live.items()}
        for agent in live:
            if left[agent]:
                infos[agent]["slice"] = self.batch.current_slices[0]
        if self._recorder is not None:
            self._recorder.add(self.snapshot(joint[0]))
        seen = self._seen(infos)
        self.agents = [] if over else [agent for agent in live if not left[agent]]
        return (
            seen,
            {agent: float(rewards[0, slot]) for agent, slot in live.items()},
            {agent: bool(terminated[0]) or left[agent] for agent in live},
            {agent: bool(truncated[0]) and not left[agent] for agent in live},
            infos,
        )

    def _seen(self, infos: dict[str, dict[str, Any]]) -> dict[str, Observation]:
        """The observations of all agents; puts the masks into the infos if ``action_mask`` is "info"."""
        rows = self.batch.observation[0]
        whole = self.batch.observation_name == "compact"
        slots = {agent: self._slots[agent] for agent in self.agents}
        seen = {
            agent: np.roll(rows, -slot, axis=0).ravel() if whole else rows[slot].copy() for agent, slot in slots.items()
        }
        if self._mask_in is None:
            return dict(seen)
        every = self.batch.action_masks()[0].astype(np.int8)
        masks = {agent: every[slot] for agent, slot in slots.items()}
        if self._mask_in == "info":
            for agent, mask in masks.items():
                infos[agent]["action_mask"] = mask
            return dict(seen)
        return {agent: {"observation": seen[agent], "action_mask": mask} for agent, mask in masks.items()}

    def state(self) -> NDArray:
        """The observations of all agents [A, …], or one compact vector, as in ``state_space``."""
        return compact_state(self.batch) if self._state_name == "compact" else self.batch.observation[0].copy()
