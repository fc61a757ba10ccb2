"""The layout of observations: shapes, names, and how to split a flat "ego" vector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.types import MAX_SIZE, NUM_ACTIONS
from mapf_frozenlake.world.layers import LAYERS, NUMBER, WINDOW, ObservationName

DTYPES = {"float32": 1, "int8": 127}  # dtype -> the value of 1.0; int8 has the same numbers times 127, truncated


@dataclass(frozen=True)
class EgoLayout:
    """One agent's "ego" vector: window planes around it, then features, which include its action mask. ``layers.LAYERS``
    describes each. An empty slot is all zeros.
    """

    window: int  # side of the window, odd
    hints: bool

    @property
    def planes(self) -> tuple[str, ...]:
        return tuple(self._named(WINDOW))

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(self._named(NUMBER))

    def _named(self, extent: str) -> Iterator[str]:
        for layer in LAYERS["ego"]:
            if layer.extent == extent and layer.is_shown(self.hints):
                yield from layer.names

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
        """A view of the action mask: [..., 5], nonzero if the action stays on the board."""
        begin = self.window_size + self.features.index("mask_0")
        return observation[..., begin : begin + NUM_ACTIONS]


def checked_window(window: int | None, max_size: int) -> int:
    """The window's side: the given one, or 2·max_size − 1 up to 11, which shows all of a small board."""
    side = min(2 * max_size - 1, 11) if window is None else window
    if not 3 <= side <= 2 * MAX_SIZE - 1 or side % 2 == 0:
        raise LakeError(
            f"window={window}: the agent stands in the middle, so give an odd side from 3 to {2 * MAX_SIZE - 1}"
        )
    return side


def agent_shape(name: ObservationName, layout: EgoLayout, max_size: int) -> tuple[int, ...]:
    """The shape of one agent's observation."""
    if name == "ego":
        return (layout.size,)
    numbers = sum(len(layer.names) for layer in LAYERS[name])
    side = layout.window if name == "pogema" else max_size
    return (numbers,) if name == "compact" else (numbers, side, side)


def space_of(name: ObservationName, shape: tuple[int, ...], dtype: str) -> spaces.Box:
    """The Gymnasium space of observations of this kind with this shape."""
    if name == "compact":
        return spaces.Box(-1, MAX_SIZE - 1, shape, np.int16)
    one = DTYPES[dtype]
    return spaces.Box(-one if name == "ego" else 0, one, shape, np.dtype(dtype).type)
