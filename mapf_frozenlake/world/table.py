"""The addresses of many arrays in one array, from which a kernel makes the arrays again.

Passing an array to compiled code takes about a tenth of a microsecond. A State or a Boards takes a dozen times as long, which
is more than a step of one env. A table of addresses is a single array. Its maker keeps the arrays alive while it is used.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.numba_private import array_at
from mapf_frozenlake.world.boards import Boards
from mapf_frozenlake.world.jit import subkernel
from mapf_frozenlake.world.state import EPISODE, RECORD, State

_SCALARS = 6  # at the front of a table


def _table(scalars: tuple[int, ...], arrays: tuple[NDArray, ...]) -> NDArray[np.int64]:
    for array in arrays:
        if not array.flags.c_contiguous:
            raise ValueError("a table takes C-contiguous arrays only: its reader knows no strides")
    filled = (*scalars, *[0] * (_SCALARS - len(scalars)))
    return np.array([*filled, *(array.ctypes.data for array in arrays)], dtype=np.int64)


def table_of_state(state: State) -> NDArray[np.int64]:
    """The addresses of a State's arrays; ``open_state`` is its inverse."""
    num_envs, agents = state.cells.shape
    scalars = (num_envs, agents, state.distance.shape[2], state.lake.shape[1], state.stride, state.pad)
    return _table(scalars, state[:-2])


@subkernel
def open_state(table):
    n, agents, deep, wide, stride, pad = table[0], table[1], table[2], table[3], table[4], table[5]
    area = stride * stride
    return State(
        array_at(table[6], (n,), EPISODE),
        array_at(table[7], (n, area), np.uint8),
        array_at(table[8], (n, agents), np.int32),
        array_at(table[9], (n, agents), np.int32),
        array_at(table[10], (n, agents), np.int32),
        array_at(table[11], (n, agents), np.int32),
        array_at(table[12], (n, agents), RECORD),
        array_at(table[13], (n, agents), np.uint32),
        array_at(table[14], (n, area), np.int16),
        array_at(table[15], (n, area), np.int16),
        array_at(table[16], (n, wide), np.int16),
        array_at(table[17], (n, area), np.int16),
        array_at(table[18], (n, agents, deep), np.int16),
        array_at(table[19], (n, agents), np.int8),
        array_at(table[20], (n, agents), np.float64),
        array_at(table[21], (n, max(deep, wide)), np.int32),
        array_at(table[22], (area, 2), np.int16),
        stride,
        pad,
    )


def table_of_boards(boards: Boards) -> NDArray[np.int64]:
    """The addresses of the arrays of a set of instances; ``open_boards`` is its inverse."""
    return _table((*boards.holes.shape, boards.starts.shape[1]), boards)


@subkernel
def open_boards(table):
    m, height, width, agents = table[0], table[1], table[2], table[3]
    return Boards(
        array_at(table[6], (m, height, width), np.bool_),
        array_at(table[7], (m,), np.int16),
        array_at(table[8], (m,), np.int16),
        array_at(table[9], (m,), np.int16),
        array_at(table[10], (m, agents, 2), np.int16),
        array_at(table[11], (m, agents, 2), np.int16),
        array_at(table[12], (m,), np.int32),
        array_at(table[13], (m,), np.int16),
        array_at(table[14], (m,), np.uint64),
    )
