"""The remaining sum of costs of two agents, alone on the board, from every pair of cells."""

from __future__ import annotations

import numpy as np

from mapf_frozenlake.solvers.bits import kernel
from mapf_frozenlake.solvers.board import UNREACHABLE


@kernel
def _distances_around(board, goal, blocked, out, queue):
    out[:] = UNREACHABLE
    out[goal] = 0
    queue[0] = goal
    head, tail = 0, 1
    while head < tail:
        cell = queue[head]
        head += 1
        for k in range(board.degree[cell]):
            neighbor = board.neighbors[cell, k]
            if neighbor != blocked and out[neighbor] == UNREACHABLE:
                out[neighbor] = out[cell] + 1
                queue[tail] = neighbor
                tail += 1


@kernel
def pair_costs(problem, first, second, may_wait, out):
    """``out[a, b]``: the least remaining sum of costs with the agents on a and b, both still moving; or UNREACHABLE.

    Dijkstra backwards: either the agent on its goal is done and the other goes round it, or both pay for one more step.
    """
    board = problem.board
    cells = len(board.degree)
    goal_first, goal_second = np.int64(problem.goals[first]), np.int64(problem.goals[second])
    out[:] = UNREACHABLE
    around, queue = np.empty(cells, np.int16), np.empty(cells, np.int16)
    _distances_around(board, goal_second, goal_first, around, queue)
    for cell in range(cells):
        out[goal_first, cell] = around[cell]
    _distances_around(board, goal_first, goal_second, around, queue)
    for cell in range(cells):
        out[cell, goal_second] = min(out[cell, goal_second], around[cell])

    # buckets of pairs by cost; a pair is put in at most once as a source and once from a step
    most = 4 * cells
    top = np.empty(most + 3, np.int64)
    top[:] = -1
    below = np.empty(2 * cells * cells, np.int64)
    pair_of = np.empty(2 * cells * cells, np.int64)
    count = 0
    for a in range(cells):
        for b in range(cells):
            if out[a, b] <= most and a != b:
                pair_of[count], below[count], top[out[a, b]] = a * cells + b, top[out[a, b]], count
                count += 1
    level = 0
    last = 2 * cells
    while level <= min(last, most):
        entry = top[level]
        while entry >= 0:
            a, b = divmod(pair_of[entry], cells)
            entry = below[entry]
            if out[a, b] != level:
                continue
            for k in range(board.degree[a] + 1):
                from_a = np.int64(board.neighbors[a, k]) if k < board.degree[a] else a
                if from_a == a and not may_wait and a != goal_first:
                    continue
                for m in range(board.degree[b] + 1):
                    from_b = np.int64(board.neighbors[b, m]) if m < board.degree[b] else b
                    if from_b == b and not may_wait and b != goal_second:
                        continue
                    if from_a == from_b or (from_a == b and from_b == a) or out[from_a, from_b] <= level + 2:
                        continue
                    out[from_a, from_b] = level + 2
                    last = max(last, level + 2)
                    pair = from_a * cells + from_b
                    pair_of[count], below[count], top[level + 2] = pair, top[level + 2], count
                    count += 1
        level += 1
