"""Best-first search over joint states for the least sum of costs, for boards on which sharing out delays takes too long.

A state has each agent's cell and whether it is done. An agent that steps onto its goal is done or not: both are tried. An
agent that is done stays and pays no more. The bound is the sum of distances, plus the excess costs of disjoint pairs. A state
is expanded only up to the present bound, and again at the next bound.
"""

from __future__ import annotations

import numpy as np

from mapf_frozenlake.solvers.bits import kernel, search_step
from mapf_frozenlake.solvers.board import NUM_CANDIDATES, candidate
from mapf_frozenlake.solvers.joint import FOUND, NONE, OUT_OF_BUDGET
from mapf_frozenlake.solvers.pair_costs import pair_costs
from mapf_frozenlake.solvers.rows import find_row, larger_table, taller

MOST_TABLE_CELLS = 1 << 24
NOT_YET = 1 << 62  # cost of the path to a new state
FITS, CLASHES, COSTS_TOO_MUCH = 0, 1, 2
BACK_TO_GOAL = 2  # an agent on its goal that is not done has to leave it and return


@kernel
def fits_best_first(cells, agents):
    return agents < 60 and cells * cells * agents * agents <= MOST_TABLE_CELLS


@kernel
def _cost_left(problem, agent, cell, done):
    if done:
        return np.int64(0)
    distance = np.int64(problem.distance[agent, cell])
    return distance if distance > 0 else np.int64(BACK_TO_GOAL)


@kernel
def _excess(problem, costs, a, b, cell_a, cell_b):
    """The cost beyond their distances that two moving agents must pay."""
    together = np.int64(costs[b, a, cell_b, cell_a])
    return max(together - problem.distance[a, cell_a] - problem.distance[b, cell_b], 0)


@kernel
def _bound(problem, costs, row):
    """A lower bound on the remaining cost: distances, plus the largest excess of pairs that share no agent."""
    agents = len(row) - 1
    total = np.int64(0)
    free = np.int64(0)
    for a in range(agents):
        done = (row[agents] >> a) & 1
        total += _cost_left(problem, a, row[a], done == 1)
        if done == 0 and problem.distance[a, row[a]] > 0:
            free |= np.int64(1) << a
    while True:
        most, best_a, best_b = 0, -1, -1
        for a in range(agents):
            if (free >> a) & 1:
                for b in range(a):
                    if (free >> b) & 1:
                        excess = _excess(problem, costs, a, b, row[a], row[b])
                        if excess > most:
                            most, best_a, best_b = excess, a, b
        if best_a < 0:
            return total
        total += most
        free &= ~((np.int64(1) << best_a) | (np.int64(1) << best_b))


@kernel
def least_costs(problem, may_wait, most, budget, costs_out):
    """Each agent's cost in a plan of least sum, into ``costs_out``; NONE if every plan costs more than ``most`` in sum."""
    agents = len(problem.starts)
    costs = _costs_of_pairs(problem, may_wait)
    # one row per state: cells, then one bit per agent for "done"; facts: cost paid, parent
    rows = np.empty((1024, agents + 1), np.int64)
    facts = np.empty((1024, 2), np.int64)
    table = np.empty(4096, np.int64)
    table[:] = -1
    entries = np.empty((1024, 3), np.int64)  # state, its cost when pushed, the entry below
    top = np.empty(most + 2, np.int64)
    top[:] = -1
    for agent in range(agents):
        rows[0, agent] = problem.starts[agent]
    rows[0, agents] = 0
    facts[0, 0], facts[0, 1] = 0, -1
    table[find_row(table, rows, rows[0])] = 0
    count, num_entries = 1, 1
    bound = _bound(problem, costs, rows[0])
    if bound > most:
        return NONE
    entries[0, 0], entries[0, 1], entries[0, 2] = 0, 0, -1
    top[bound] = 0
    everybody = (np.int64(1) << agents) - 1
    tried = np.empty(agents, np.int64)
    left = np.empty(agents + 1, np.int64)
    spent = np.empty(agents + 1, np.int64)
    after = np.empty(agents + 1, np.int64)
    now = np.empty(agents + 1, np.int64)
    while bound <= most:
        entry = top[bound]
        if entry < 0:
            bound += 1
            continue
        top[bound] = entries[entry, 2]
        current = entries[entry, 0]
        if facts[current, 0] != entries[entry, 1]:
            continue  # a cheaper path to it was found since
        now[:] = rows[current]
        if now[agents] == everybody:
            _costs_of(rows, facts, current, costs_out)
            return FOUND
        if budget[0] <= 0:
            return OUT_OF_BUDGET
        budget[0] -= 1
        paid = facts[current, 0] + _pay_a_step(problem, now, left)
        # every joint step within the bound, agent after agent
        cut = False
        agent = 0
        tried[0], spent[0], after[agents] = 0, paid, now[agents]
        while agent >= 0:
            if budget[0] < 0:  # the caller wants it to stop
                return OUT_OF_BUDGET
            if tried[agent] == 2 * NUM_CANDIDATES:
                agent -= 1
                continue
            there, done = _option(problem, now, agent, tried[agent], may_wait)
            tried[agent] += 1
            if there < 0:
                continue
            total = spent[agent] + _cost_left(problem, agent, there, done)
            fit = _fit(problem, costs, now, after, agent, there, total + left[agent + 1], bound)
            if fit != FITS:
                cut |= fit == COSTS_TOO_MUCH
                continue
            after[agent] = there
            after[agents] = (after[agents] & ~(np.int64(1) << agent)) | (np.int64(done) << agent)
            if agent + 1 < agents:
                agent += 1
                tried[agent], spent[agent] = 0, total
                continue
            if paid + _bound(problem, costs, after) > bound:
                cut = True
                continue
            slot = find_row(table, rows, after)
            child = table[slot]
            if child < 0:
                if count == len(rows):
                    rows, facts = taller(rows, 0), taller(facts, 0)
                child = count
                rows[child] = after
                facts[child, 0] = NOT_YET
                table[slot] = child
                count += 1
                if 2 * count > len(table):
                    table = larger_table(table, rows, count)
            if facts[child, 0] <= paid:
                continue
            facts[child, 0], facts[child, 1] = paid, current
            if num_entries == len(entries):
                entries = taller(entries, 0)
            entries[num_entries, 0], entries[num_entries, 1], entries[num_entries, 2] = child, paid, top[bound]
            top[bound] = num_entries
            num_entries += 1
        if cut and bound < most:
            entries[entry, 2] = top[bound + 1]
            top[bound + 1] = entry
    return NONE


@kernel
def _costs_of_pairs(problem, may_wait):
    agents, cells = len(problem.starts), len(problem.board.degree)
    costs = np.empty((agents, agents, cells, cells), np.int16)
    for a in range(agents):
        for b in range(a):
            pair_costs(problem, b, a, may_wait, costs[b, a])
    return costs


@search_step
def _pay_a_step(problem, now, left):
    """The cost of a step: 1 for each agent that is not done. ``left[i]`` becomes the cost that agents i and later must pay after it."""
    agents = len(now) - 1
    paid = np.int64(0)
    left[agents] = 0
    for agent in range(agents - 1, -1, -1):
        done = (now[agents] >> agent) & 1
        paid += 1 - done
        stay_away = np.int64(problem.distance[agent, now[agent]])
        left[agent] = left[agent + 1] + (0 if done == 1 else max(stay_away - 1, 0))
    return paid


@search_step
def _option(problem, now, agent, option, may_wait):
    """(cell, whether the agent is done there): first the moves that end its path, then all others; cell -1 after the last."""
    here = now[agent]
    if (now[len(now) - 1] >> agent) & 1 == 1:
        return (here if option == 0 else np.int64(-1)), True
    done = option < NUM_CANDIDATES
    k = option if done else option - NUM_CANDIDATES
    there = np.int64(candidate(problem.board, problem.distance[agent], here, k, may_wait))
    if done and there >= 0 and (there == here or problem.distance[agent, there] != 0):
        there = np.int64(-1)
    return there, done


@search_step
def _fit(problem, costs, now, after, agent, there, total, bound):
    """Whether this step fits the steps of earlier agents, which ``after`` has, and the bound."""
    if total > bound:
        return COSTS_TOO_MUCH
    for other in range(agent):
        if after[other] == there or (now[other] == there and after[other] == now[agent]):
            return CLASHES
        under_way = problem.distance[agent, there] > 0 and problem.distance[other, after[other]] > 0
        if under_way and total + _excess(problem, costs, agent, other, there, after[other]) > bound:
            return COSTS_TOO_MUCH
    return FITS


@kernel
def _costs_of(rows, facts, last, costs_out):
    """The step after which each agent is done, from the chain of states that ends in ``last``."""
    agents = len(costs_out)
    current, steps = last, 0
    while facts[current, 1] >= 0:
        steps += 1
        current = facts[current, 1]
    current = last
    for step in range(steps, -1, -1):
        for agent in range(agents):
            if (rows[current, agents] >> agent) & 1:
                costs_out[agent] = step
        current = facts[current, 1]
