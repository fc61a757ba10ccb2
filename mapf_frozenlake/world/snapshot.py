"""``Snapshot``: one lake at one moment. Renderers get nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.constants import BoolGrid


@dataclass(frozen=True)
class Snapshot:
    """The lake after ``step`` steps. Empty slots are left out; agents that have left the board have cells and goals of -1."""

    holes: BoolGrid  # [height, width]
    positions: NDArray[np.int16]  # [num_agents, 2]: row, col, after the step
    goals: NDArray[np.int16]  # [num_agents, 2]
    starts: NDArray[np.int16]  # [num_agents, 2]
    actions: NDArray[np.int8] | None = None  # [num_agents]: actions of the step, as chosen; None at the start
    events: NDArray[np.int8] | None = None  # [num_agents]: Event codes of the step; None at the start
    trails: NDArray[np.int16] | None = None  # [steps + 1, num_agents, 2]: positions of all agents, oldest first
    step: int = 0
    horizon: int | None = None
