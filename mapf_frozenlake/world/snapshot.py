"""``Snapshot``: one lake at one moment, which is all that a renderer gets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.constants import BoolGrid


@dataclass(frozen=True)
class Snapshot:
    """What stands where after ``step`` steps. Only agents that take part are listed: empty slots are left out."""

    holes: BoolGrid  # [height, width]
    positions: NDArray[np.int16]  # [num_agents, 2]: row, col, after the step
    goals: NDArray[np.int16]  # [num_agents, 2]
    starts: NDArray[np.int16]  # [num_agents, 2]
    actions: NDArray[np.int8] | None = None  # [num_agents]: what was asked for in the step; None at the start
    events: NDArray[np.int8] | None = None  # [num_agents]: Event codes of the step; None at the start
    trails: NDArray[np.int16] | None = None  # [steps + 1, num_agents, 2]: where everybody stood, oldest first
    step: int = 0
    horizon: int | None = None
