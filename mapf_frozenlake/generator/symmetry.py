"""A 64-bit key that is equal for instances that differ only by rotation, reflection or the numbering of agents."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mapf_frozenlake.instance_arrays import InstanceData
from mapf_frozenlake.numba_private import SUBKERNEL
from mapf_frozenlake.random_bits import mix
from mapf_frozenlake.types import Instance

_HOLE, _AGENT, _SHAPE = np.uint64(1), np.uint64(2), np.uint64(3)  # keys that separate the kinds of facts


@njit(**SUBKERNEL)
def _seen(symmetry, row, col, height, width):
    """The cell's place after one of the 8 symmetries: bit 0 flips rows, bit 1 flips columns, bit 2 transposes."""
    if symmetry & 1:
        row = height - 1 - row
    if symmetry & 2:
        col = width - 1 - col
    return (col, row) if symmetry & 4 else (row, col)


@njit(**SUBKERNEL)
def key_of(holes, height, width, starts, goals, agents):
    """The least hash over the symmetries; the hash ignores the agents' order.

    Instances that are equal up to symmetry always have equal keys; others collide with probability of about 2⁻⁶¹.
    """
    least = np.uint64(0xFFFFFFFFFFFFFFFF)
    for symmetry in range(8):
        total = np.uint64(0)
        for row in range(height):
            for col in range(width):
                if holes[row, col]:
                    r, c = _seen(symmetry, row, col, height, width)
                    total += mix(_HOLE, np.uint64((r << 8) | c))
        for agent in range(agents):
            r, c = _seen(symmetry, starts[agent, 0], starts[agent, 1], height, width)
            goal_r, goal_c = _seen(symmetry, goals[agent, 0], goals[agent, 1], height, width)
            ends = (np.int64(r) << 24) | (np.int64(c) << 16) | (np.int64(goal_r) << 8) | np.int64(goal_c)
            total += mix(_AGENT, np.uint64(ends))
        shape = (np.int64(width) << 8 | np.int64(height)) if symmetry & 4 else (np.int64(height) << 8 | np.int64(width))
        least = min(least, mix(_SHAPE, total ^ np.uint64(shape)))
    return least


@njit(cache=True, nogil=True, no_cfunc_wrapper=True)
def _keys(holes, heights, widths, starts, goals, agents):
    keys = np.empty(heights.size, np.uint64)
    for row in range(heights.size):
        keys[row] = key_of(holes[row], heights[row], widths[row], starts[row], goals[row], agents[row])
    return keys


def canonical_keys(these: InstanceData) -> NDArray[np.uint64]:
    """One key per instance, uint64[n]: equal for instances that differ only by rotation, reflection or relabelling."""
    return _keys(these.holes, these.heights, these.widths, these.starts, these.goals, these.num_agents)


def canonical_key(instance: Instance) -> int:
    """The key of one instance."""
    holes, starts, goals = (np.array(array[None]) for array in (instance.holes, instance.starts, instance.goals))
    shape = np.array([instance.height, instance.width, instance.num_agents], np.int16)
    return int(_keys(holes, shape[:1], shape[1:2], starts, goals, shape[2:])[0])
