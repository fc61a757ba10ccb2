"""One uniform draw: starts and goals at least ``min_distance`` apart, holes among the other cells, then a reach check.

A draw that breaks a rule is discarded as a whole. So every board that a stratum allows is equally likely.
"""

from __future__ import annotations

import numpy as np

from mapf_frozenlake.random_bits import mix
from mapf_frozenlake.solvers.bits import inlined, kernel

_ONE = np.uint64(1)
_LOW_32 = np.uint64(0xFFFFFFFF)
MAX_PLACEMENTS = 200_000  # tries to place all starts and goals, for one draw


@kernel
def stream_of(seed_key, index):
    """The random state of instance ``index``, uint64[2]: the instance's key, and the count of numbers drawn."""
    stream = np.empty(2, np.uint64)
    stream[0], stream[1] = mix(np.uint64(seed_key), np.uint64(index)), np.uint64(0)
    return stream


@kernel
def below(stream, bound):
    """An exactly uniform number from 0 to bound − 1 (multiply, and reject the few draws that would bias it)."""
    bound64 = np.uint64(bound)
    while True:
        product = (mix(stream[0], stream[1]) >> np.uint64(32)) * bound64
        stream[1] += _ONE
        low = product & _LOW_32
        if low >= bound64 or low >= (np.uint64(1 << 32) - bound64) % bound64:
            return np.int64(product >> np.uint64(32))


@kernel
def count_up_to(ascending, value):
    """The number of entries that are at most ``value``."""
    low, high = 0, ascending.size
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def place(stream, height, width, agents, min_distance, displacements, cells, starts, goals):
    """Uniformly random starts and goals on distinct cells, each pair far enough apart; False if no such draw was found.

    ``cells`` int64[height · width] holds every cell once, as row << 8 | col. On return, the 2 · agents used cells come first.
    With empty ``displacements``, cells are drawn and their distances checked. Otherwise it is int64[k, 3]: row offset, column
    offset, and running count of the pairs of cells with this offset; then pairs are drawn and checked for overlap.
    """
    for _ in range(MAX_PLACEMENTS):
        if displacements.shape[0] == 0:
            placed = _place_cells(stream, agents, min_distance, cells, starts, goals)
        else:
            placed = _place_pairs(stream, height, width, agents, displacements, cells, starts, goals)
        if placed:
            return True
    return False


@kernel
def _place_cells(stream, agents, min_distance, cells, starts, goals):
    for agent in range(agents):
        for which in range(2):
            slot = 2 * agent + which
            chosen = slot + below(stream, cells.size - slot)
            cells[slot], cells[chosen] = cells[chosen], cells[slot]
        start, goal = cells[2 * agent], cells[2 * agent + 1]
        start_row, start_col, goal_row, goal_col = start >> 8, start & 255, goal >> 8, goal & 255
        if abs(start_row - goal_row) + abs(start_col - goal_col) < min_distance:
            return False
        starts[agent, 0], starts[agent, 1] = start_row, start_col
        goals[agent, 0], goals[agent, 1] = goal_row, goal_col
    return True


@kernel
def _place_pairs(stream, height, width, agents, displacements, cells, starts, goals):
    used = np.empty(cells.size, np.int64)
    used[:] = 0
    for agent in range(agents):
        which = count_up_to(displacements[:, 2], below(stream, displacements[-1, 2]))
        down, right = displacements[which, 0], displacements[which, 1]
        row = below(stream, height - abs(down)) - min(down, 0)
        col = below(stream, width - abs(right)) - min(right, 0)
        start, goal = row * width + col, (row + down) * width + col + right
        if used[start] or used[goal]:
            return False
        used[start] = used[goal] = 1
        starts[agent, 0], starts[agent, 1] = row, col
        goals[agent, 0], goals[agent, 1] = row + down, col + right
    front, back = 0, 2 * agents
    for cell in range(cells.size):
        code = (cell // width) << 8 | cell % width
        if used[cell]:
            cells[front] = code
            front += 1
        else:
            cells[back] = code
            back += 1
    return True


@kernel
def dig(stream, height, width, agents, num_holes, cells, holes):
    """Uniformly random holes among the cells that ``place`` left: fills holes[:height, :width]."""
    holes[:height, :width] = False
    first = 2 * agents
    for slot in range(first, first + num_holes):
        chosen = slot + below(stream, cells.size - slot)
        cells[slot], cells[chosen] = cells[chosen], cells[slot]
        holes[cells[slot] >> 8, cells[slot] & 255] = True


@kernel
def all_can_reach(holes, height, width, starts, goals, agents, lake_of, stack):
    """Whether every agent's goal is connected to its start over ice. Scratch: int16[height, width] and int64[height · width]."""
    lake_of[:] = -1
    for agent in range(agents):
        row, col = starts[agent, 0], starts[agent, 1]
        if lake_of[row, col] < 0:
            lake_of[row, col] = agent
            stack[0], waiting = row << 8 | col, 1
            while waiting > 0:
                waiting -= 1
                row, col = stack[waiting] >> 8, stack[waiting] & 255
                for side in range(4):
                    next_row = row + (side == 1) - (side == 3)
                    next_col = col + (side == 2) - (side == 0)
                    if not (0 <= next_row < height and 0 <= next_col < width) or holes[next_row, next_col]:
                        continue
                    if lake_of[next_row, next_col] < 0:
                        lake_of[next_row, next_col] = agent
                        stack[waiting] = next_row << 8 | next_col
                        waiting += 1
        if lake_of[goals[agent, 0], goals[agent, 1]] != lake_of[starts[agent, 0], starts[agent, 1]]:
            return False
    return True


@kernel
def every_cell(height, width):
    """int64[height · width]: all cells in order, as row << 8 | col."""
    cells = np.empty(height * width, np.int64)
    for cell in range(cells.size):
        cells[cell] = (cell // width) << 8 | cell % width
    return cells
