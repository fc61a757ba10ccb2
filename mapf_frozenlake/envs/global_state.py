"""The whole lake as one vector, for centralised critics; much smaller than all agents' observations together."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from mapf_frozenlake.world.batch import LakeBatch


def compact_space(batch: LakeBatch) -> spaces.Box:
    """float32[max_size² + 4 · A + 1], all within [-1, 1]."""
    return spaces.Box(-1.0, 1.0, (batch.max_size**2 + 4 * batch.max_agents + 1,), np.float32)


def compact_state(batch: LakeBatch) -> NDArray[np.float32]:
    """The first lake: the board row by row (0 ice, 1 hole, -1 off the board), then row, col, goal row, goal col of every agent over
    max_size - 1 (-1 in empty slots), then the elapsed share of the horizon."""
    side = batch.max_size
    board = np.full((side, side), -1.0, np.float32)
    holes = batch.holes(0)
    board[: holes.shape[0], : holes.shape[1]] = holes
    cells = np.concatenate([batch.positions[0], batch.goals[0]], axis=1).astype(np.float32)
    cells = np.where(cells < 0, -1.0, cells / (side - 1))
    time = batch.step_count[0] / max(1, batch.horizon[0])
    return np.concatenate([board.ravel(), cells.ravel(), [time]]).astype(np.float32)
