"""Where everything lies in an observation: shapes, names, and how to take a flat "ego" vector apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.types import MAX_SIZE, NUM_ACTIONS

ObservationName = Literal["grid", "ego", "compact"]
OBSERVATIONS: tuple[ObservationName, ...] = ("grid", "ego", "compact")
DTYPES = {"float32": 1, "int8": 127}  # dtype -> what stands for 1.0; int8 is the same numbers times 127, cut off

EGO_PLANES = ("blocked", "others", "goal", "others_goals")
EGO_FEATURES = ("goal_row", "goal_col", "on_goal", "priority", "crowd", "time")
GRID_PLANES = ("hole", "off_board", "self", "goal", "others", "others_goals")


@dataclass(frozen=True)
class EgoLayout:
    """One agent's "ego" vector: window planes around it, then features, then its action mask; hints close each group.

    planes   ``blocked``: hole or off the board. ``others``: 1 where an agent of a lower number (higher priority) stands, 0.5
             of a higher one. ``goal``: its own. ``others_goals``: theirs. Hint ``way``: how much nearer to the goal each cell
             is, over the radius, in [-1, 1]; -1 where there is no way.
    features ``goal_row``, ``goal_col``: the way to the goal over (max_size - 1); ``on_goal``; ``priority``: (number + 1)
             over max_agents; ``crowd``: agents over max_agents; ``time``: share of the horizon that has passed.
    mask     one per action: 1 unless it leaves the board. Hint ``legal``: 1 unless it leaves the board or enters a hole.

    An empty slot is all zeros.
    """

    window: int  # side of the window, odd
    hints: bool

    @property
    def planes(self) -> tuple[str, ...]:
        return (*EGO_PLANES, "way") if self.hints else EGO_PLANES

    @property
    def features(self) -> tuple[str, ...]:
        mask = tuple(f"mask_{action}" for action in range(NUM_ACTIONS))
        legal = tuple(f"legal_{action}" for action in range(NUM_ACTIONS))
        return (*EGO_FEATURES, *mask, *legal) if self.hints else (*EGO_FEATURES, *mask)

    @property
    def window_size(self) -> int:
        return len(self.planes) * self.window * self.window

    @property
    def size(self) -> int:
        return self.window_size + len(self.features)

    def split(self, observation: NDArray) -> tuple[NDArray, NDArray]:
        """Views: window [..., planes, window, window] and features [..., features]."""
        lead = observation.shape[:-1]
        window = observation[..., : self.window_size].reshape(*lead, len(self.planes), self.window, self.window)
        return window, observation[..., self.window_size :]

    def action_mask(self, observation: NDArray) -> NDArray:
        """A view of the action mask: [..., 5], nonzero where the action stays on the board."""
        begin = self.window_size + len(EGO_FEATURES)
        return observation[..., begin : begin + NUM_ACTIONS]


def checked_window(window: int | None, max_size: int) -> int:
    """The window's side: as asked for, or 2·max_size − 1 up to 11, which sees the whole of a small board."""
    side = min(2 * max_size - 1, 11) if window is None else window
    if not 3 <= side <= 2 * MAX_SIZE - 1 or side % 2 == 0:
        raise LakeError(
            f"window={window}: the agent stands in the middle, so give an odd side from 3 to {2 * MAX_SIZE - 1}"
        )
    return side


def agent_shape(name: ObservationName, layout: EgoLayout, max_size: int) -> tuple[int, ...]:
    """What one agent sees, as a shape."""
    if name == "ego":
        return (layout.size,)
    return (4,) if name == "compact" else (len(GRID_PLANES), max_size, max_size)


def space_of(name: ObservationName, shape: tuple[int, ...], dtype: str) -> spaces.Box:
    """The Gymnasium space of observations of this kind with this shape."""
    if name == "compact":
        return spaces.Box(-1, MAX_SIZE - 1, shape, np.int16)
    one = DTYPES[dtype]
    return spaces.Box(-one if name == "ego" else 0, one, shape, np.dtype(dtype).type)
