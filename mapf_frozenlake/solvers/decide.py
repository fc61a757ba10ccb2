"""Decides exactly whether all agents can meet their deadlines, with joint search only for agents in conflict.

Each agent starts with its own shortest path. If two paths conflict, one of the two agents takes another path if it can.
Otherwise their groups are merged and searched jointly (independence detection).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapf_frozenlake.solvers.bits import kernel
from mapf_frozenlake.solvers.joint import FOUND, NONE, OUT_OF_BUDGET, fits_joint_search, joint_search
from mapf_frozenlake.solvers.pairs import fill_table, in_time
from mapf_frozenlake.solvers.routes import by_slack, occupy, route

EXPANSIONS_TO_GO_ROUND = 100
MOST_TABLE_WORDS = 1 << 27  # a gigabyte


class Room(NamedTuple):
    """The arrays that a decision keeps between merges."""

    occupied: np.ndarray  # uint8[steps, cells]: 1 + the agent there, 0 if free
    reach: np.ndarray  # uint64[agents, steps, words]: cells from which each agent is still in time
    reach_known: np.ndarray  # int64[agents]: 1 if the agent's cells are computed
    slot_of: np.ndarray  # int64[agents, agents]: the table of a pair a < b, -1 if not computed
    tables: np.ndarray  # uint64[tables, steps, cells, words]
    ready: np.ndarray  # uint64[cells, words]


@kernel
def make_room(agents, steps, cells, words):
    pairs = agents * (agents - 1) // 2
    slot_of = np.empty((agents, agents), np.int64)
    slot_of[:] = -1
    occupied = np.empty((steps, cells), np.uint8)
    occupied[:] = 0
    reach_known = np.empty(agents, np.int64)
    reach_known[:] = 0
    return Room(
        occupied,
        np.empty((agents, steps, words), np.uint64),
        reach_known,
        slot_of,
        np.empty((max(1, min(pairs, MOST_TABLE_WORDS // (steps * cells * words))), steps, cells, words), np.uint64),
        np.empty((cells, words), np.uint64),
    )


@kernel
def no_blame(problem):
    to_blame = np.empty(len(problem.starts), np.int64)
    to_blame[:] = 0
    return to_blame


@kernel
def decide(problem, deadlines, may_wait, budget, paths, to_blame):
    """FOUND with ``paths`` filled, NONE if no plan meets the deadlines, OUT_OF_BUDGET.

    With NONE, ``to_blame`` marks agents that would miss their deadlines even if they were alone on the board.
    """
    agents, steps = paths.shape
    if budget[0] <= 0:
        return OUT_OF_BUDGET
    budget[0] -= 1
    room = make_room(agents, steps, len(problem.board.degree), len(problem.board.free))
    order = by_slack(problem, deadlines)
    group = np.empty(agents, np.int64)
    for agent in order:
        group[agent] = agent
        if not route(problem, agent, deadlines[agent], may_wait, room.occupied, paths[agent]):
            clear = np.empty(room.occupied.shape, np.uint8)
            clear[:] = 0
            if not route(problem, agent, deadlines[agent], may_wait, clear, paths[agent]):
                to_blame[agent] = 1
                return NONE
        occupy(room.occupied, paths[agent], agent)
    while True:
        a, b = first_conflict(paths, group)
        if a < 0:
            return FOUND
        if _goes_round(problem, a, group, deadlines, may_wait, room.occupied, paths):
            continue
        if _goes_round(problem, b, group, deadlines, may_wait, room.occupied, paths):
            continue
        joined, absorbed = group[a], group[b]
        for agent in range(agents):
            if group[agent] == absorbed:
                group[agent] = joined
        status = _plan_group(problem, joined, group, order, deadlines, may_wait, room, budget, paths)
        if status != FOUND:
            for agent in range(agents):
                to_blame[agent] = group[agent] == joined
            return status


@kernel
def first_conflict(paths, group):
    """The two agents of different groups whose paths conflict first; (-1, -1) without a conflict."""
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


@kernel
def _goes_round(problem, agent, group, deadlines, may_wait, occupied, paths):
    """Whether an agent that is alone in its group has a path that avoids the others; if so, writes it to ``paths``."""
    for other in range(len(group)):
        if other != agent and group[other] == group[agent]:
            return False
    _occupy_others(paths, group, group[agent], occupied)
    before = np.empty(paths.shape[1], np.int16)
    _copy(paths[agent], before)
    if route(problem, agent, deadlines[agent], may_wait, occupied, paths[agent]):
        alone = np.empty(len(group), np.int64)
        alone[:] = 0
        alone[agent] = 1  # where other paths overlap, `occupied` has only one of them, so check all
        if first_conflict(paths, alone)[0] < 0:
            return True
    _copy(before, paths[agent])
    return False


@kernel
def _plan_group(problem, label, group, order, deadlines, may_wait, room, budget, paths):
    """Conflict-free paths for a group; they avoid other groups' paths, too, if a short search finds such."""
    members = np.empty(len(order), np.int64)
    size = 0
    for agent in order:
        if group[agent] == label:
            members[size] = agent
            size += 1
    members = members[:size]
    if not fits_joint_search(len(problem.board.degree), size):
        return OUT_OF_BUDGET
    status = _know_pairs(problem, members, deadlines, may_wait, room)
    if status != FOUND:
        return status
    _occupy_others(paths, group, label, room.occupied)
    before = budget[0]
    budget[0] = EXPANSIONS_TO_GO_ROUND  # not charged to the caller's budget
    status = joint_search(
        problem, members, deadlines, may_wait, room.slot_of, room.tables, room.occupied, budget, paths
    )
    if budget[0] < 0:
        return OUT_OF_BUDGET
    budget[0] = before
    if status != FOUND:
        room.occupied[:] = 0
        status = joint_search(
            problem, members, deadlines, may_wait, room.slot_of, room.tables, room.occupied, budget, paths
        )
    return status


@kernel
def _know_pairs(problem, members, deadlines, may_wait, room):
    """Fill the tables of the members' pairs; NONE if some pair alone cannot meet its deadlines."""
    for agent in members:
        if room.reach_known[agent] == 0:
            in_time(problem, agent, deadlines[agent], may_wait, room.reach[agent])
            room.reach_known[agent] = 1
    used = 0
    for a in range(len(room.slot_of)):
        for b in range(a):
            used = max(used, room.slot_of[b, a] + 1)
    for a in members:
        for b in members:
            if a < b and room.slot_of[a, b] < 0:
                if used == len(room.tables):
                    return OUT_OF_BUDGET
                room.slot_of[a, b] = used
                if not fill_table(problem, a, b, may_wait, room.reach[a], room.reach[b], room.tables[used], room.ready):
                    return NONE
                used += 1
    return FOUND


@kernel
def _occupy_others(paths, group, label, occupied):
    occupied[:] = 0
    for agent in range(len(group)):
        if group[agent] != label:
            occupy(occupied, paths[agent], agent)


@kernel
def _copy(path, out):
    for t in range(len(path)):
        out[t] = path[t]
