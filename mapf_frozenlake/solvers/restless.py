"""Decides whether a plan exists in which agents wait only on their own goals: exhaustive, in synchronous joint moves.

Some boards have plans, but none of this kind, because agents that must keep moving cannot lose a step. On such boards a
loop over longer and longer deadlines would never end.
"""

from __future__ import annotations

import numpy as np

from mapf_frozenlake.solvers.bits import kernel
from mapf_frozenlake.solvers.board import GOALS_ONLY, NUM_CANDIDATES, candidate
from mapf_frozenlake.solvers.joint import (
    FOUND,
    NONE,
    OUT_OF_BUDGET,
    bits_per_cell,
    find_slot,
    fits_joint_search,
    grown,
    make_key,
)
from mapf_frozenlake.solvers.rows import taller


@kernel
def restless_plan_exists(problem, members, budget):
    """FOUND if these agents, alone on the board, can reach their goals without other waits; NONE; OUT_OF_BUDGET."""
    size = len(members)
    if not fits_joint_search(len(problem.board.degree), size):
        return OUT_OF_BUDGET
    width = bits_per_cell(len(problem.board.degree))
    seen = np.empty((1024, 2), np.uint64)
    seen[:] = 0
    key = np.empty(2, np.uint64)
    stack = np.empty((1024, size), np.int16)
    for place in range(size):
        stack[0, place] = problem.starts[members[place]]
    depth, count = 1, 0
    now, then = np.empty(size, np.int64), np.empty(size, np.int64)
    tried = np.empty(size, np.int64)
    while depth > 0:
        depth -= 1
        at_goals = True
        for place in range(size):
            now[place] = stack[depth, place]
            at_goals &= now[place] == problem.goals[members[place]]
        if at_goals:
            return FOUND
        if budget[0] <= 0:
            return OUT_OF_BUDGET
        budget[0] -= 1
        place = 0
        tried[0] = NUM_CANDIDATES - 1  # the best last, so that it is on top of the stack
        while place >= 0:
            if budget[0] < 0:  # the caller wants it to stop
                return OUT_OF_BUDGET
            if tried[place] < 0:
                place -= 1
                continue
            agent = members[place]
            there = candidate(problem.board, problem.distance[agent], now[place], tried[place], GOALS_ONLY)
            tried[place] -= 1
            if there < 0 or _in_conflict(now, then, place, there):
                continue
            then[place] = there
            if place + 1 < size:
                place += 1
                tried[place] = NUM_CANDIDATES - 1
                continue
            make_key(then, np.int64(0), width, key)
            slot = find_slot(seen, key)
            if seen[slot, 1] != 0:
                continue
            seen[slot, 0], seen[slot, 1] = key[0], key[1]
            count += 1
            if 2 * count > len(seen):
                seen = grown(seen)
            if depth == len(stack):
                stack = taller(stack, 0)
            for p in range(size):
                stack[depth, p] = then[p]
            depth += 1
    return NONE


@kernel
def _in_conflict(now, then, place, there):
    for other in range(place):
        if then[other] == there:
            return True
        if now[other] == there and then[other] == now[place]:
            return True
    return False
