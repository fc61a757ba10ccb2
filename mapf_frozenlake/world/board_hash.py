"""The hash by which a trainer knows a board again."""

from __future__ import annotations

import numpy as np

from mapf_frozenlake.random_bits import mix
from mapf_frozenlake.world.jit import rare

UNHASHED = np.uint64(0)  # in the column of hashes


@rare
def hash_of_board(boards, row):
    """64 bits that are equal for equal boards with equal starts and goals, in every set of instances and every process."""
    height, width, count = boards.heights[row], boards.widths[row], boards.num_agents[row]
    bits = mix(np.uint64(height) << np.uint64(16) | np.uint64(width), np.uint64(count))
    for r in range(height):
        holes = np.uint64(0)  # of this row of cells; a row has at most 64
        for c in range(width):
            holes = holes << np.uint64(1) | np.uint64(boards.holes[row, r, c])
        bits = mix(bits, holes)
    for i in range(count):
        start = np.uint64(boards.starts[row, i, 0]) << np.uint64(16) | np.uint64(boards.starts[row, i, 1])
        goal = np.uint64(boards.goals[row, i, 0]) << np.uint64(16) | np.uint64(boards.goals[row, i, 1])
        bits = mix(bits, start << np.uint64(32) | goal)
    return bits
