"""Depth-first search over joint states from which every pair of agents can still meet its deadlines.

A joint state after t steps fails when all its successors fail. Failed states are stored exactly.
"""

from __future__ import annotations

import numpy as np

from mapf_frozenlake.solvers import bits
from mapf_frozenlake.solvers.bits import kernel, search_step
from mapf_frozenlake.solvers.board import NUM_CANDIDATES, candidate

FOUND, NONE, OUT_OF_BUDGET = 1, 0, 2
_USED = np.uint64(1 << 63)
_TIME_SHIFT = np.uint64(50)  # 13 bits of time over 50 bits of cells, in the second word of a key


@kernel
def bits_per_cell(cells):
    width = 1
    while (1 << width) < cells:
        width += 1
    return width


@kernel
def fits_joint_search(cells, agents):
    """Whether a joint state and its step fit a key of two words."""
    width = bits_per_cell(cells)
    return agents <= 64 // width + 50 // width


@kernel
def make_key(state, time, width, key):
    first = 64 // width
    key[0] = np.uint64(0)
    key[1] = np.uint64(0)
    for place in range(len(state)):
        word = 0 if place < first else 1
        key[word] = (key[word] << np.uint64(width)) | np.uint64(state[place])
    key[1] |= _USED | (np.uint64(time) << _TIME_SHIFT)


@kernel
def find_slot(keys, key):
    """The key's slot, or its free slot, in a table whose length is a power of two."""
    mask = np.uint64(len(keys) - 1)
    mixed = (key[0] ^ (key[1] * np.uint64(0x9E3779B97F4A7C15))) * np.uint64(0xD6E8FEB86659FD93)
    slot = (mixed ^ (mixed >> np.uint64(32))) & mask
    while keys[slot, 1] != 0 and (keys[slot, 0] != key[0] or keys[slot, 1] != key[1]):
        slot = (slot + np.uint64(1)) & mask
    return slot


@kernel
def grown(keys):
    larger = np.empty((4 * len(keys), 2), np.uint64)
    larger[:] = 0
    for old in range(len(keys)):
        if keys[old, 1] != 0:
            slot = find_slot(larger, keys[old])
            larger[slot, 0], larger[slot, 1] = keys[old, 0], keys[old, 1]
    return larger


@kernel
def joint_search(problem, members, deadlines, may_wait, slot_of, tables, occupied, budget, paths):
    """Paths for the group ``members`` that meet the deadlines, written to ``paths``; exact.

    ``tables[slot_of[a, b]]`` is the pair table of a < b. The group may not enter ``occupied`` cells: if there are any, NONE is no
    proof about the group alone. ``budget[0]`` counts down expansions.
    """
    size, horizon = len(members), paths.shape[1] - 1
    width = bits_per_cell(len(problem.board.degree))
    state = np.empty((horizon + 1, size), np.int64)
    tried = np.empty((horizon + 1, size), np.int64)
    tried[:] = 0
    given_up = np.empty((256, 2), np.uint64)
    given_up[:] = 0
    num_given_up = 0
    key = np.empty(2, np.uint64)
    for place in range(size):
        state[0, place] = problem.starts[members[place]]
    t, place = 0, 0
    while t < horizon:
        if place == size:
            make_key(state[t + 1], t + 1, width, key)
            slot = find_slot(given_up, key)
            if given_up[slot, 1] != 0:
                place -= 1
                continue
            t, place = t + 1, 0
            if t < horizon:
                tried[t, 0] = 0
                if budget[0] <= 0:
                    return OUT_OF_BUDGET
                budget[0] -= 1
            continue
        if budget[0] < 0:  # the caller wants it to stop
            return OUT_OF_BUDGET
        if _take_a_step(problem, members, deadlines, may_wait, slot_of, tables, occupied, state, tried, t, place):
            place += 1
            if place < size:
                tried[t, place] = 0
        elif place > 0:
            place -= 1
        else:
            make_key(state[t], t, width, key)
            slot = find_slot(given_up, key)
            given_up[slot, 0], given_up[slot, 1] = key[0], key[1]
            num_given_up += 1
            if 2 * num_given_up > len(given_up):
                given_up = grown(given_up)
            t, place = t - 1, size - 1
            if t < 0:
                return NONE
    for place in range(size):
        for t in range(horizon + 1):
            paths[members[place], t] = state[t, place]
    return FOUND


@search_step
def _take_a_step(problem, members, deadlines, may_wait, slot_of, tables, occupied, state, tried, t, place):
    """The agent's next untried step that is in time and that agents before it in the group allow; False after the last."""
    agent = members[place]
    here = state[t, place]
    distance = problem.distance[agent]
    time_left = max(deadlines[agent] - t - 1, 0)
    while tried[t, place] < NUM_CANDIDATES:
        there = candidate(problem.board, distance, here, tried[t, place], may_wait)
        tried[t, place] += 1
        if there < 0 or distance[there] > time_left:
            continue
        if occupied[t + 1, there] != 0 or (occupied[t, there] != 0 and occupied[t + 1, here] == occupied[t, there]):
            continue
        if _pairs_allow(members, slot_of, tables, state, t, place, there):
            state[t + 1, place] = there
            return True
    return False


@search_step
def _pairs_allow(members, slot_of, tables, state, t, place, there):
    """Whether the agent could still meet its deadline from there, paired with each agent before it in the group."""
    agent, here = members[place], state[t, place]
    for before in range(place):
        other = members[before]
        if state[t, before] == there and state[t + 1, before] == here:
            return False  # swap conflict
        if other < agent:
            row, column = tables[slot_of[other, agent], t + 1, state[t + 1, before]], there
        else:
            row, column = tables[slot_of[agent, other], t + 1, there], state[t + 1, before]
        if not bits.has(row, column):
            return False
    return True
