"""Can all agents make their deadlines? Exact, and only as much joint search as the conflicts ask for.

Agents start on ways of their own; where two ways collide one of them goes round the other if it can, else their groups
are merged and searched jointly (independence detection).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mapf_frozenlake.solvers.joint import FOUND, NONE, OUT_OF_BUDGET, fits_joint_search, joint_search
from mapf_frozenlake.solvers.pairs import fill_table, in_time
from mapf_frozenlake.solvers.routes import by_slack, occupy, route


@njit(cache=True)
def first_conflict(paths, group):
    """Two agents of different groups whose ways conflict earliest; (-1, -1) if none do."""
    agents, steps = paths.shape
    for t in range(steps):
        for a in range(agents):
            for b in range(a):
                if group[a] == group[b]:
                    continue
                if paths[a, t] == paths[b, t]:
                    return b, a
                if t > 0 and paths[a, t] == paths[b, t - 1] and paths[b, t] == paths[a, t - 1]:
                    return b, a
    return -1, -1


@njit(cache=True)
def decide(problem, deadlines, may_wait, budget, paths):
    """FOUND with ``paths`` filled, NONE if no plan meets the deadlines, OUT_OF_BUDGET."""
    agents, steps = paths.shape
    cells, words = len(problem.board.degree), len(problem.board.free)
    occupied = np.zeros((steps, cells), np.uint8)
    seen = np.empty((steps, cells), np.bool_)
    tried = np.empty(steps, np.int8)
    reach = np.empty((agents, steps, words), np.uint64)
    reach_known = np.zeros(agents, np.bool_)
    slot_of = np.full((agents, agents), -1)
    tables = np.empty((1, steps, cells, words), np.uint64)
    num_tables = 0
    ready = np.empty((cells, words), np.uint64)
    group = np.arange(agents)
    order = by_slack(problem, deadlines)

    nobody = np.zeros((1, 1), np.uint8)
    for agent in order:
        if not route(problem, agent, deadlines[agent], may_wait, occupied, seen, tried, paths[agent]):
            nobody = np.zeros((steps, cells), np.uint8)
            if not route(problem, agent, deadlines[agent], may_wait, nobody, seen, tried, paths[agent]):
                return NONE
        else:
            occupy(occupied, paths[agent], agent)

    while True:
        a, b = first_conflict(paths, group)
        if a < 0:
            return FOUND
        if _goes_round(problem, a, group, deadlines, may_wait, occupied, seen, tried, paths):
            continue
        if _goes_round(problem, b, group, deadlines, may_wait, occupied, seen, tried, paths):
            continue
        joined, absorbed = group[a], group[b]
        for agent in range(agents):
            if group[agent] == absorbed:
                group[agent] = joined
        members = order[np.array([group[agent] == joined for agent in order])]
        if not fits_joint_search(cells, len(members)):
            return OUT_OF_BUDGET
        for first in members:
            if not reach_known[first]:
                in_time(problem, first, deadlines[first], may_wait, reach[first])
                reach_known[first] = True
        for first in members:
            for second in members:
                if first < second and slot_of[first, second] < 0:
                    if num_tables == len(tables):
                        larger = np.empty((2 * num_tables + 1, steps, cells, words), np.uint64)
                        larger[:num_tables] = tables
                        tables = larger
                    slot_of[first, second] = num_tables
                    table = tables[num_tables]
                    num_tables += 1
                    if not fill_table(problem, first, second, may_wait, reach[first], reach[second], table, ready):
                        return NONE
        occupied[:] = 0
        for agent in range(agents):
            if group[agent] != joined:
                occupy(occupied, paths[agent], agent)
        around = np.array([min(budget[0], 100)])
        if joint_search(
            problem, members, deadlines, may_wait, slot_of, tables, occupied, True, around, paths
        ) != FOUND:  # fmt: skip
            status = joint_search(
                problem, members, deadlines, may_wait, slot_of, tables, occupied, False, budget, paths
            )  # fmt: skip
            if status != FOUND:
                return status


@njit(cache=True)
def _goes_round(problem, agent, group, deadlines, may_wait, occupied, seen, tried, paths):
    """Whether an agent that is alone in its group finds a way clear of everybody else's; then ``paths`` has it."""
    for other in range(len(group)):
        if other != agent and group[other] == group[agent]:
            return False
    occupied[:] = 0
    for other in range(len(group)):
        if other != agent:
            occupy(occupied, paths[other], other)
    before = paths[agent].copy()
    if route(problem, agent, deadlines[agent], may_wait, occupied, seen, tried, paths[agent]):
        alone = np.zeros(len(group), np.int64)
        alone[agent] = 1  # where others' ways overlap, `occupied` knows only one of them: look at all
        if first_conflict(paths, alone)[0] < 0:
            return True
    paths[agent] = before
    return False
