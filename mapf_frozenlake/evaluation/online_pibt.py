"""``OnlinePIBT``: priority inheritance with backtracking, one step at a time from where the agents stand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.solvers.experts import pibt_step
from mapf_frozenlake.types import DELTAS, Action
from mapf_frozenlake.world.batch import LakeBatch


class OnlinePIBT:
    """A planner for ``evaluate`` on a ``PathProtocol``: it plans anew in every step, so goals may change (rolling horizon of one step).

    It knows the whole board and all goals. It keeps no plan and does not search, so it can get stuck where LaCAM would not.
    """

    name = "PIBT"

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def act_on(self, batch: LakeBatch) -> NDArray[np.int64]:
        """Actions int64[n, A] for the boards as they are now; agents without a board wait."""
        positions, goals, active, begins = batch.positions, batch.goals, batch.active, batch.step_count == 0
        if begins.all():
            self._urgency = np.zeros(active.shape, np.int64)
            self._random = np.array([0x9E3779B97F4A7C15 * (2 * self._seed + 1) % 2**64], np.uint64)
            self._goals = goals
        changed = (goals != self._goals).any(axis=-1) | (positions == goals).all(axis=-1)
        self._urgency = np.where(changed, 0, self._urgency + 1)
        self._goals = goals
        actions = np.full(active.shape, Action.WAIT, np.int64)
        for env in np.flatnonzero(~batch.finished).tolist():
            there, holes = active[env], batch.holes(env)
            cells = pibt_step(holes, positions[env, there], goals[env, there], self._urgency[env, there], self._random)
            moves = np.stack(np.divmod(cells, holes.shape[1] + 1), axis=1) - positions[env, there]
            actions[env, there] = (moves[:, None] == DELTAS).all(axis=-1).argmax(axis=1)
        return actions
