"""The least sum of costs: each agent has its own deadline, and deadlines are raised as little as possible in sum.

Agents that cannot all meet the deadlines that they would have alone form a group, and only the group's deadlines are raised
(increasing cost tree search over independence detection). A pair's verdict on two deadlines is computed once and stored.
"""

from __future__ import annotations

import numpy as np

from mapf_frozenlake.solvers.best_first import fits_best_first, least_costs
from mapf_frozenlake.solvers.bits import kernel
from mapf_frozenlake.solvers.board import Problem
from mapf_frozenlake.solvers.decide import decide, no_blame
from mapf_frozenlake.solvers.joint import FOUND, NONE, OUT_OF_BUDGET
from mapf_frozenlake.solvers.makespan import WORDS_FOR_ALL_PAIRS, longest_distance, plan_of_least_makespan
from mapf_frozenlake.solvers.pairs import fill_table, in_time, pair_distance

REMEMBERED_DELAYS = 48
FEW_DELAYS = 4  # tried for a pair before the slower proof that a plan exists
EXPANSIONS_TO_SHARE_DELAYS = 50_000  # about 0.1 s
NO_END = 1 << 62
SHARES_PER_EXPANSION = 64  # ways to share out delays that cost as much as one expansion of a joint state


@kernel
def plan_of_least_sum_of_costs(problem, may_wait, budget):
    """(status, paths); ``paths`` are filled if the status is FOUND."""
    agents = len(problem.starts)
    group = np.empty(agents, np.int64)
    deadlines = np.empty(agents, np.int64)
    apart = longest_distance(problem) >= 0  # each of them alone could reach its goal
    for agent in range(agents):
        group[agent] = agent
        deadlines[agent] = problem.distance[agent, problem.starts[agent]] if apart else 0
    first = True
    while True:
        paths = np.empty((agents, _latest(deadlines) + 1), np.int16)
        if not apart:
            return NONE, paths
        to_blame = no_blame(problem)
        status = decide(problem, deadlines, may_wait, budget, paths, to_blame)
        if status != NONE:
            return status, paths
        if first:  # not earlier, because most boards do not need it
            first = False
            if agents == 2 and _raise_deadlines(problem, may_wait, budget, deadlines, FEW_DELAYS) == FOUND:
                continue
            status = _some_plan_exists(problem, may_wait, budget)
            if status != FOUND:
                return status, paths
        size = _put_together(to_blame, group)
        members = np.empty(size, np.int64)
        own = np.empty(size, np.int64)
        place = 0
        for agent in range(agents):
            if to_blame[agent]:
                members[place], own[place] = agent, deadlines[agent]
                place += 1
        status = _cheapest_deadlines(_part(problem, members), may_wait, budget, own)
        if status != FOUND:
            return status, paths
        for place in range(size):
            deadlines[members[place]] = own[place]


@kernel
def _some_plan_exists(problem, may_wait, budget):
    """FOUND, NONE or OUT_OF_BUDGET for plans of any length. Without a plan, raising deadlines would never end."""
    if may_wait and len(problem.starts) == 2 and len(problem.board.free) <= WORDS_FOR_ALL_PAIRS:
        return FOUND if pair_distance(problem, 0, 1) >= 0 else NONE
    status, _, _ = plan_of_least_makespan(problem, may_wait, budget)
    return status


@kernel
def _latest(deadlines):
    latest = np.int64(0)
    for deadline in deadlines:
        latest = max(latest, deadline)
    return latest


@kernel
def _put_together(to_blame, group):
    """Merge all groups with an agent to blame, and blame all its agents; returns their number."""
    joined = -1
    for agent in range(len(group)):
        if to_blame[agent]:
            if joined < 0:
                joined = group[agent]
            absorbed = group[agent]
            for other in range(len(group)):
                if group[other] == absorbed:
                    group[other] = joined
    size = 0
    for agent in range(len(group)):
        to_blame[agent] = group[agent] == joined
        size += to_blame[agent]
    return size


@kernel
def _part(problem, members):
    """The same board with these agents only."""
    size = len(members)
    starts, goals = np.empty(size, np.int16), np.empty(size, np.int16)
    distance = np.empty((size, problem.distance.shape[1]), np.int16)
    for place in range(size):
        starts[place] = problem.starts[members[place]]
        goals[place] = problem.goals[members[place]]
        for cell in range(distance.shape[1]):
            distance[place, cell] = problem.distance[members[place], cell]
    return Problem(problem.board, starts, goals, distance)


@kernel
def _cost(paths):
    """The sum of costs of a plan."""
    total = 0
    for agent in range(paths.shape[0]):
        steps = paths.shape[1] - 1
        while steps > 0 and paths[agent, steps - 1] == paths[agent, steps]:
            steps -= 1
        total += steps
    return total


@kernel
def _cheapest_deadlines(problem, may_wait, budget, deadlines):
    """The deadlines of least sum that all agents can meet together: by sharing out delays, or best-first if that takes too long."""
    kept = max(0, budget[0] - EXPANSIONS_TO_SHARE_DELAYS)
    budget[0] -= kept
    before = np.empty(len(deadlines), np.int64)
    for agent in range(len(deadlines)):
        before[agent] = deadlines[agent]
    status = _raise_deadlines(problem, may_wait, budget, deadlines, NO_END)
    budget[0] += kept
    if status != OUT_OF_BUDGET:
        return status
    if fits_best_first(len(problem.board.degree), len(deadlines)):
        status, _, quick = plan_of_least_makespan(problem, may_wait, budget)
        return least_costs(problem, may_wait, _cost(quick), budget, deadlines) if status == FOUND else status
    for agent in range(len(deadlines)):
        deadlines[agent] = before[agent]
    return _raise_deadlines(problem, may_wait, budget, deadlines, NO_END)


@kernel
def _raise_deadlines(problem, may_wait, budget, deadlines, most):
    """The deadlines of least sum, at least the present sum, that all agents can meet together. Such deadlines must exist.

    The agents cannot meet the present deadlines. NONE if delays of up to ``most`` steps in sum do not suffice.
    """
    agents = len(deadlines)
    alone = np.empty(agents, np.int64)
    total = 0
    for agent in range(agents):
        alone[agent] = problem.distance[agent, problem.starts[agent]]
        total += deadlines[agent] - alone[agent]
    total = max(total, 1)  # a delay of 0 can be shared out in only one way
    # by pair and by its two delays: 0 unknown, 1 the pair can meet them, -1 it cannot
    verdicts = np.empty((agents * (agents - 1) // 2, REMEMBERED_DELAYS * REMEMBERED_DELAYS), np.int16)
    verdicts[:] = 0
    while total <= most:
        # every way to share out `total` steps of delay, depth-first
        delay = np.empty(agents, np.int64)
        left = np.empty(agents + 1, np.int64)
        place = 0
        delay[0], left[0] = -1, total
        shared = 0
        while place >= 0:
            shared += 1
            if shared % SHARES_PER_EXPANSION == 0:
                budget[0] -= 1
                if budget[0] <= 0:
                    return OUT_OF_BUDGET
            delay[place] += 1
            if place == agents - 1:
                delay[place] = max(delay[place], left[place])
            if delay[place] > left[place]:
                place -= 1
                continue
            deadlines[place] = alone[place] + delay[place]
            possible = True
            for other in range(place):
                if not _pair_makes(problem, other, place, delay, deadlines, may_wait, verdicts):
                    possible = False
                    break
            if not possible:
                continue
            if place + 1 < agents:
                left[place + 1] = left[place] - delay[place]
                place += 1
                delay[place] = -1
                continue
            if agents == 2 and delay[0] < REMEMBERED_DELAYS and delay[1] < REMEMBERED_DELAYS:
                budget[0] -= 1  # for a pair alone, this verdict is already the decision
                return FOUND
            paths = np.empty((agents, _latest(deadlines) + 1), np.int16)
            status = decide(problem, deadlines, may_wait, budget, paths, no_blame(problem))
            if status != NONE:
                return status
        if budget[0] <= 0:
            return OUT_OF_BUDGET
        total += 1
    return NONE


@kernel
def _pair_makes(problem, a, b, delay, deadlines, may_wait, verdicts):
    """Whether two agents a < b alone on the board can meet their deadlines."""
    remembered = delay[a] < REMEMBERED_DELAYS and delay[b] < REMEMBERED_DELAYS
    if not remembered:
        return True  # unknown: leave it to the decision about all
    pair, delays = b * (b - 1) // 2 + a, delay[a] * REMEMBERED_DELAYS + delay[b]
    if verdicts[pair, delays] == 0:
        steps = max(deadlines[a], deadlines[b]) + 1
        cells, words = len(problem.board.degree), len(problem.board.free)
        reach = np.empty((2, steps, words), np.uint64)
        in_time(problem, a, deadlines[a], may_wait, reach[0])
        in_time(problem, b, deadlines[b], may_wait, reach[1])
        table = np.empty((steps, cells, words), np.uint64)
        ready = np.empty((cells, words), np.uint64)
        makes = fill_table(problem, a, b, may_wait, reach[0], reach[1], table, ready)
        verdicts[pair, delays] = 1 if makes else -1
    return verdicts[pair, delays] > 0
