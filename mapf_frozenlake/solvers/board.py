"""The board as the solvers see it: flat cells, neighbours, distances.

Cell ``row * stride + col`` with ``stride = width + 1``: the spare column is never free. A move off the left or right
side lands on it, so moves of whole sets of cells are shifts of bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapf_frozenlake.solvers.bits import add, kernel

# `may_wait`. Numba would compile plain True and False separately.
ANYWHERE, GOALS_ONLY = np.bool_(True), np.bool_(False)
UNREACHABLE = np.int16(32767)


class Board(NamedTuple):
    neighbors: np.ndarray  # int16[cells, 4]: the free neighbours, `degree` of them, in the order of the actions
    degree: np.ndarray  # int16[cells]
    free: np.ndarray  # uint64[words]: bit set of the cells without a hole
    stride: int


class Problem(NamedTuple):
    board: Board
    starts: np.ndarray  # int16[agents]: flat cells
    goals: np.ndarray  # int16[agents]
    distance: np.ndarray  # int16[agents, cells]: moves to the agent's goal, or UNREACHABLE


@kernel
def make_board(holes, height, width):
    stride = width + 1
    cells = height * stride
    neighbors = np.empty((cells, 4), np.int16)
    degree = np.empty(cells, np.int16)
    degree[:] = 0
    free = np.empty((cells + 63) >> 6, np.uint64)
    free[:] = 0
    for row in range(height):
        for col in range(width):
            if holes[row, col]:
                continue
            cell = row * stride + col
            add(free, cell)
            count = 0
            if col > 0 and not holes[row, col - 1]:
                neighbors[cell, count] = cell - 1
                count += 1
            if row + 1 < height and not holes[row + 1, col]:
                neighbors[cell, count] = cell + stride
                count += 1
            if col + 1 < width and not holes[row, col + 1]:
                neighbors[cell, count] = cell + 1
                count += 1
            if row > 0 and not holes[row - 1, col]:
                neighbors[cell, count] = cell - stride
                count += 1
            degree[cell] = count
    return Board(neighbors, degree, free, stride)


@kernel
def distances_to(board, goal, out, queue):
    """Breadth-first search from the goal, because moves are reversible."""
    out[:] = UNREACHABLE
    out[goal] = 0
    queue[0] = goal
    head, tail = 0, 1
    while head < tail:
        cell = queue[head]
        head += 1
        farther = out[cell] + 1
        for k in range(board.degree[cell]):
            neighbor = board.neighbors[cell, k]
            if out[neighbor] == UNREACHABLE:
                out[neighbor] = farther
                queue[tail] = neighbor
                tail += 1


@kernel
def make_problem(holes, height, width, starts, goals, num_agents):
    """From the padded arrays of an instance: rows and columns beyond height, width and num_agents are ignored."""
    board = make_board(holes, height, width)
    cells = len(board.degree)
    flat_starts = np.empty(num_agents, np.int16)
    flat_goals = np.empty(num_agents, np.int16)
    distance = np.empty((num_agents, cells), np.int16)
    queue = np.empty(cells, np.int16)
    for agent in range(num_agents):
        flat_starts[agent] = starts[agent, 0] * board.stride + starts[agent, 1]
        flat_goals[agent] = goals[agent, 0] * board.stride + goals[agent, 1]
        distances_to(board, flat_goals[agent], distance[agent], queue)
    return Problem(board, flat_starts, flat_goals, distance)


NUM_CANDIDATES = 9


@kernel
def candidate(board, distance, cell, k, may_wait):
    """The k-th thing an agent may try from a cell: moves towards its goal, then waiting, then moves away; -1 if none."""
    if k == 4:
        return cell if may_wait or distance[cell] == 0 else -1
    towards = k < 4
    if not towards:
        k -= 5
    if k >= board.degree[cell]:
        return -1
    neighbor = np.int64(board.neighbors[cell, k])
    return neighbor if (distance[neighbor] < distance[cell]) == towards else -1
