"""Decides exactly whether any plan exists, without searching for a short one.

Every joint move is a sequence of single moves into empty cells and of rotations of full cycles, so reachability needs only
these. If a plan exists, best-first search towards the goals finds one fast; if not, the reachable states run out.
"""

from __future__ import annotations

import numpy as np

from mapf_frozenlake.solvers.bits import kernel, search_step
from mapf_frozenlake.solvers.board import ANYWHERE, UNREACHABLE
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
from mapf_frozenlake.solvers.routes import plan_in_turn
from mapf_frozenlake.solvers.rows import taller


@kernel
def joinable(problem, members, budget):
    """FOUND if these agents, alone on the board, can all be brought to their goals; NONE; OUT_OF_BUDGET."""
    board = problem.board
    size = len(members)
    if not fits_joint_search(len(board.degree), size):
        return OUT_OF_BUDGET
    width = bits_per_cell(len(board.degree))
    known = np.empty((1024, 2), np.uint64)
    known[:] = 0
    key = np.empty(2, np.uint64)
    states = np.empty((1024, size), np.int16)
    below = np.empty(1024, np.int64)  # states of equal distance form a stack: the one below, -1 at the end
    far = 0
    for agent in members:
        for cell in range(len(board.degree)):
            if problem.distance[agent, cell] != UNREACHABLE:
                far = max(far, problem.distance[agent, cell])
    top = np.empty(size * far + 1, np.int64)
    top[:] = -1
    state = np.empty(size, np.int16)
    agent_at = np.empty(len(board.degree), np.int16)
    agent_at[:] = -1
    cycle = np.empty(size + 1, np.int64)
    tried = np.empty(size + 1, np.int64)
    for place in range(size):
        state[place] = problem.starts[members[place]]
    count, nearest = np.int64(0), 0
    count, states, below, known = _push(problem, members, state, width, key, states, below, top, known, count)
    while True:
        while nearest < len(top) and top[nearest] < 0:
            nearest += 1
        if nearest == len(top):
            return NONE
        if nearest == 0:
            return FOUND
        if budget[0] <= 0:
            return OUT_OF_BUDGET
        budget[0] -= 1
        current = top[nearest]
        top[nearest] = below[current]
        for place in range(size):
            state[place] = states[current, place]
            agent_at[state[place]] = place
        closest = nearest
        for place in range(size):
            here = state[place]
            for k in range(board.degree[here]):
                there = board.neighbors[here, k]
                if agent_at[there] < 0:
                    state[place] = there
                    closest = min(closest, _total(problem, members, state))
                    count, states, below, known = _push(
                        problem, members, state, width, key, states, below, top, known, count
                    )
                    state[place] = here
        if size >= 4:
            cycle[0], tried[0], depth = 0, 0, np.int64(0)
            while depth >= 0:
                depth = _next_cycle(board, states[current], agent_at, cycle, tried, depth, budget)
                if budget[0] < 0:  # the caller wants it to stop
                    return OUT_OF_BUDGET
                if depth >= 0:
                    for i in range(depth + 1):
                        state[cycle[i]] = states[current, cycle[(i + 1) % (depth + 1)]]
                    closest = min(closest, _total(problem, members, state))
                    count, states, below, known = _push(
                        problem, members, state, width, key, states, below, top, known, count
                    )
                    for i in range(depth + 1):
                        state[cycle[i]] = states[current, cycle[i]]
        for place in range(size):
            agent_at[state[place]] = -1
        nearest = closest


@search_step
def _next_cycle(board, cells, agent_at, cycle, tried, depth, budget):
    """Find the next directed cycle of occupied cells depth-first, from its agent of lowest place; returns its last index or -1."""
    while budget[0] >= 0:
        if tried[depth] == board.degree[cells[cycle[depth]]]:
            depth -= 1
            if depth < 0:
                if cycle[0] + 1 == len(cells):
                    return np.int64(-1)
                cycle[0], tried[0], depth = cycle[0] + 1, 0, np.int64(0)
            continue
        following = agent_at[board.neighbors[cells[cycle[depth]], tried[depth]]]
        tried[depth] += 1
        if following == cycle[0] and depth >= 2:  # a cycle of two would be a swap
            return depth
        on_it = following <= cycle[0]
        for i in range(1, depth + 1):
            on_it |= cycle[i] == following
        if not on_it:
            depth += 1
            cycle[depth], tried[depth] = following, 0
    return depth


@kernel
def _total(problem, members, state):
    total = np.int64(0)
    for place in range(len(members)):
        total += np.int64(problem.distance[members[place], state[place]])
    return total


@kernel
def _push(problem, members, state, width, key, states, below, top, known, count):
    make_key(state, np.int64(0), width, key)
    slot = find_slot(known, key)
    if known[slot, 1] != 0:
        return count, states, below, known
    known[slot, 0], known[slot, 1] = key[0], key[1]
    if count == len(states):
        states = taller(states, 0)
        more_below = np.empty(2 * count, np.int64)
        for old in range(count):
            more_below[old] = below[old]
        below = more_below
    for place in range(len(state)):
        states[count, place] = state[place]
    total = _total(problem, members, state)
    below[count] = top[total]
    top[total] = count
    count += 1
    if 2 * count > len(known):
        known = grown(known)
    return count, states, below, known


@kernel
def solvable(problem, makespan, budget):
    """Whether all agents can be brought to their goals; cheap attempts start at ``makespan``, a lower bound."""
    agents = len(problem.starts)
    for extra in (1, 4, 12):
        deadlines = np.empty(agents, np.int64)
        deadlines[:] = makespan + extra
        paths = np.empty((agents, makespan + extra + 1), np.int16)
        if plan_in_turn(problem, deadlines, ANYWHERE, paths):
            return FOUND
    members = np.empty(3, np.int64)
    if agents > 3:  # three agents are often enough to decide it
        for a in range(agents):
            for b in range(a):
                for c in range(b):
                    members[0], members[1], members[2] = a, b, c
                    if joinable(problem, members, budget) == NONE:
                        return NONE
    everyone = np.empty(agents, np.int64)
    for agent in range(agents):
        everyone[agent] = agent
    return joinable(problem, everyone, budget)
