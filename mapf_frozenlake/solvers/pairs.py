"""Whether two agents can still meet their deadlines together: exact for every pair of cells and every step.

Layer t of a pair's table is a matrix of bits. A bit is set if the agents, one on the row's cell and the other on the bit's
cell after t steps, can both reach their goals in time (and stay) without a conflict. The joint search prunes with it.
"""

from __future__ import annotations

import numpy as np

from mapf_frozenlake.solvers import bits
from mapf_frozenlake.solvers.bits import ONE, kernel, lowest_bit
from mapf_frozenlake.solvers.board import ANYWHERE


@kernel
def in_time(problem, agent, deadline, may_wait, out):
    """``out[t]``: bit set of the cells where the agent can be after t steps and still be in time. Exact for one agent."""
    board, distance = problem.board, problem.distance[agent]
    goal = problem.goals[agent]
    horizon = len(out) - 1
    out[0] = 0
    bits.add(out[0], problem.starts[agent])
    for t in range(horizon):
        after, before = out[t + 1], out[t]
        bits.step_out(before, board.free, board.stride, after)
        time_left = max(deadline - t - 1, 0)
        if bits.has(before, goal):
            bits.add(after, goal)
        for w in range(len(after)):
            word = after[w] | before[w] if may_wait else after[w]
            after[w] = word
            while word != 0:
                bit = lowest_bit(word)
                word &= word - ONE
                if distance[(w << 6) + np.int64(bit)] > time_left:
                    after[w] &= ~(ONE << bit)


@kernel
def step_back(problem, first, second, may_wait, after, before_first, before_second, table_after, table, ready):
    """Compute one layer of the table from the layer after it. ``ready`` is scratch space, one row per cell."""
    board = problem.board
    words = len(before_second)
    goal_first, goal_second = problem.goals[first], problem.goals[second]
    for w in range(words):
        word = after[w]
        while word != 0:  # cells from which the second agent can move into the row, if the first is ignored
            cell = (w << 6) + np.int64(lowest_bit(word))
            word &= word - ONE
            row = table_after[cell]
            bits.step_out(row, board.free, board.stride, ready[cell])
            if may_wait:
                for v in range(words):
                    ready[cell, v] |= row[v]
            elif bits.has(row, goal_second):
                bits.add(ready[cell], goal_second)
    any_left = False
    for w in range(words):
        word = before_first[w]
        while word != 0:
            cell = (w << 6) + np.int64(lowest_bit(word))
            word &= word - ONE
            row = table[cell]
            row[:] = 0
            if (may_wait or cell == goal_first) and bits.has(after, cell):
                for v in range(words):
                    row[v] |= ready[cell, v]
            for k in range(board.degree[cell]):
                target = np.int64(board.neighbors[cell, k])
                if not bits.has(after, target):
                    continue
                swap = bits.has(ready[target], target) and not bits.has(row, target)
                for v in range(words):
                    row[v] |= ready[target, v]
                if swap and not _leaves_elsewhere(board, target, cell, table_after[target]):
                    # swap conflict: from there the second could only move to the first's old cell
                    bits.remove(row, target)
            bits.remove(row, cell)  # vertex conflict
            for v in range(words):
                row[v] &= before_second[v]
                any_left |= row[v] != 0
    return any_left


@kernel
def _leaves_elsewhere(board, cell, forbidden, row):
    for k in range(board.degree[cell]):
        neighbor = board.neighbors[cell, k]
        if neighbor != forbidden and bits.has(row, neighbor):
            return True
    return False


@kernel
def fill_table(problem, first, second, may_wait, reach_first, reach_second, table, ready):
    """Fill the table of a pair, last layer first; returns whether the pair can meet its deadlines."""
    horizon = len(table) - 1
    goal_first, goal_second = problem.goals[first], problem.goals[second]
    table[horizon, goal_first] = 0
    bits.add(table[horizon, goal_first], goal_second)
    for t in range(horizon - 1, -1, -1):
        if not step_back(
            problem, first, second, may_wait,
            reach_first[t + 1], reach_first[t], reach_second[t], table[t + 1], table[t], ready,
        ):  # fmt: skip
            return False
    return bits.has(table[0, problem.starts[first]], problem.starts[second])


@kernel
def _equal(one, other):
    for cell in range(one.shape[0]):
        for w in range(one.shape[1]):
            if one[cell, w] != other[cell, w]:
                return False
    return True


@kernel
def pair_distance(problem, first, second):
    """The least makespan of two agents alone on the board, waits anywhere; -1 if they cannot both get there."""
    board = problem.board
    cells, words = len(board.degree), len(board.free)
    layers = np.empty((2, cells, words), np.uint64)
    layers[:] = 0
    ready = np.empty((cells, words), np.uint64)
    bits.add(layers[0, problem.goals[first]], problem.goals[second])
    steps = 0
    while True:
        after, before = layers[steps & 1], layers[1 - (steps & 1)]
        if bits.has(after[problem.starts[first]], problem.starts[second]):
            return steps
        step_back(problem, first, second, ANYWHERE, board.free, board.free, board.free, after, before, ready)
        if _equal(before, after):
            return -1
        steps += 1
