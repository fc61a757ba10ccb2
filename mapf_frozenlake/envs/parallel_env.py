"""The PettingZoo form: every agent acts, sees and is paid for itself. AEC through PettingZoo's own conversion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from mapf_frozenlake.envs.gym_env import understand_reset
from mapf_frozenlake.envs.one_lake import OneLake
from mapf_frozenlake.envs.options import understand
from mapf_frozenlake.envs.show import RENDER_FPS, RENDER_MODES, make_recorder
from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.types import NUM_ACTIONS, Action
from mapf_frozenlake.world.layout import space_of

Observation = dict[str, NDArray]


class MAPFFrozenLakeParallelEnv(OneLake, ParallelEnv[str, Observation, int]):
    """One lake; agents ``agent_0`` … are the slots, of which an episode fills the first.

    Each sees ``{"observation", "action_mask"}``. In "compact" form an agent sees all agents' rows in one vector, its own first.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "mapf_frozenlake_v0", "render_modes": list(RENDER_MODES), "is_parallelizable": True,
        "render_fps": RENDER_FPS,
    }  # fmt: skip

    def __init__(self, render_mode: str | None = None, **kwargs: Any) -> None:
        self._recorder = make_recorder(render_mode)
        self.render_mode = render_mode
        self.batch = understand(kwargs).make_batch(1)
        self.possible_agents = [f"agent_{slot}" for slot in range(self.batch.max_agents)]
        self.agents: list[str] = []
        shape = self.batch.observation.shape[2:]
        if self.batch.observation_name == "compact":
            shape = (self.batch.max_agents * shape[0],)
        one = spaces.Dict(
            {
                "observation": space_of(self.batch.observation_name, shape, self.batch.dtype),
                "action_mask": spaces.Box(0, 1, (NUM_ACTIONS,), np.int8),
            }
        )
        self.observation_spaces: dict[str, spaces.Space] = dict.fromkeys(self.possible_agents, one)
        self.action_spaces: dict[str, spaces.Space] = {
            agent: spaces.Discrete(NUM_ACTIONS) for agent in self.possible_agents
        }

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
        self.agents = self.possible_agents[: int(self.batch.active.sum())]
        if self._recorder is not None:
            self._recorder.begin(self.snapshot())
        return self._seen(), {agent: {} for agent in self.agents}

    def step(
        self, actions: Mapping[str, int]
    ) -> tuple[dict[str, Observation], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Everybody moves at once; an agent without an action waits."""
        unknown = sorted(set(actions) - set(self.agents))
        if unknown:
            raise LakeError(
                f"action for {unknown[0]!r}: live agents are {', '.join(self.agents) or 'none; call reset'}"
            )
        joint = np.full((1, self.batch.max_agents), Action.WAIT, np.int64)
        for agent, action in actions.items():
            joint[0, self.possible_agents.index(agent)] = action
        _, rewards, terminated, truncated, events = self.batch.step(joint)
        live = self.agents
        over = bool(terminated[0] or truncated[0])
        infos: dict[str, dict[str, Any]] = {agent: {"event": int(events[0, i])} for i, agent in enumerate(live)}
        if over:
            optimal = int(self.batch.optimal[0])
            outcome = {
                "success": bool(self.batch.success[0]),
                "valid": bool(self.batch.valid[0]),
                "optimal": None if optimal < 0 else bool(optimal),
            }
            infos = {agent: info | outcome for agent, info in infos.items()}
        if self._recorder is not None:
            self._recorder.add(self.snapshot(joint[0]))
        seen = self._seen()
        if over:
            self.agents = []
        return (
            seen,
            {agent: float(rewards[0, i]) for i, agent in enumerate(live)},
            dict.fromkeys(live, bool(terminated[0])),
            dict.fromkeys(live, bool(truncated[0])),
            infos,
        )

    def _seen(self) -> dict[str, Observation]:
        masks = self.batch.action_masks()[0].astype(np.int8)
        rows = self.batch.observation[0]
        whole = self.batch.observation_name == "compact"
        return {
            agent: {
                "observation": np.roll(rows, -i, axis=0).ravel() if whole else rows[i].copy(),
                "action_mask": masks[i],
            }
            for i, agent in enumerate(self.agents)
        }

    def state(self) -> NDArray:
        """[A, …]: everybody's observations together."""
        return self.batch.observation[0].copy()
