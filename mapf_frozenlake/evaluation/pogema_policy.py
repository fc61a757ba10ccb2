"""``pogema_policy``: a policy made for POGEMA, for ``evaluate`` and for batches of lakes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.types import Action

# POGEMA's actions 0 to 4, as the lake numbers them
FROM_POGEMA = np.array([Action.WAIT, Action.UP, Action.DOWN, Action.LEFT, Action.RIGHT], np.int64)


def pogema_policy(act: Callable[[list[NDArray]], Sequence[int]], obs_radius: int = 5) -> PogemaPolicy:
    """A policy of POGEMA, unchanged: ``act`` takes a list with an observation ``[3, side, side]`` for each agent of one board and
    returns POGEMA's action of each. It is asked for each board by itself, so it should not remember earlier calls.
    """
    return PogemaPolicy(act, obs_radius)


class PogemaPolicy:
    """A neural policy: the result of ``pogema_policy``."""

    def __init__(self, act: Callable[[list[NDArray]], Sequence[int]], obs_radius: int) -> None:
        self._act, self.name = act, getattr(act, "__name__", type(act).__name__)
        self.env_kwargs: dict[str, Any] = {"observation": "pogema", "window": 2 * obs_radius + 1}

    def act(self, observation: NDArray) -> NDArray[np.int64]:
        """[boards, agents, 3, side, side] -> int64[boards, agents]. Slots without an agent see zeros and wait."""
        actions = np.full(observation.shape[:2], Action.WAIT, np.int64)
        there = np.asarray(observation.any(axis=(2, 3, 4)))
        for board, agents in enumerate(there):
            if agents.any():
                chosen = np.asarray(self._act(list(observation[board, agents])))
                if chosen.shape != (agents.sum(),) or not np.isin(chosen, range(len(FROM_POGEMA))).all():
                    raise LakeError(
                        f"the policy returned {chosen.tolist()!r} for {agents.sum()} agents: give one of POGEMA's actions 0 to 4 each"
                    )
                actions[board, agents] = FROM_POGEMA[chosen]
        return actions
