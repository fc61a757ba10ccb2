"""Prioritised planning: agents one after the other, each on a path that is in time and avoids earlier agents.

It is fast and incomplete: its plans are valid, but a failure is no proof that there is no plan.
"""

from __future__ import annotations

import numpy as np

from mapf_frozenlake.solvers.bits import kernel
from mapf_frozenlake.solvers.board import NUM_CANDIDATES, candidate


@kernel
def route(problem, agent, deadline, may_wait, occupied, path):
    """Depth-first search in time for a path on which the agent stays on its goal from ``deadline`` on; fills ``path``.

    ``occupied[t, cell]`` is 1 + the agent that is there, 0 if free. Exact for one agent among fixed others.
    """
    board, distance = problem.board, problem.distance[agent]
    horizon = len(path) - 1
    if distance[problem.starts[agent]] > deadline:
        return False
    seen = np.empty(occupied.shape, np.uint8)
    seen[:] = 0
    tried = np.empty(len(path), np.int64)
    path[0] = problem.starts[agent]
    tried[0] = 0
    t = 0
    while 0 <= t < horizon:
        here = np.int64(path[t])
        time_left = max(deadline - t - 1, 0)
        moved = False
        while tried[t] < NUM_CANDIDATES and not moved:
            there = candidate(board, distance, here, tried[t], may_wait)
            tried[t] += 1
            if there < 0 or distance[there] > time_left or seen[t + 1, there] != 0 or occupied[t + 1, there] != 0:
                continue
            moved = occupied[t, there] == 0 or occupied[t + 1, here] != occupied[t, there]  # no swap
            if moved:
                seen[t + 1, there] = 1
                path[t + 1] = there
        if moved:
            t += 1
            tried[t] = 0
        else:
            t -= 1
    return t == horizon


@kernel
def occupy(occupied, path, agent):
    for t in range(len(path)):
        occupied[t, path[t]] = agent + 1


@kernel
def by_slack(problem, deadlines):
    """Agents sorted by the steps that they can lose, fewest first."""
    agents = len(deadlines)
    order = np.empty(agents, np.int64)
    slack = np.empty(agents, np.int64)
    for agent in range(agents):
        own = deadlines[agent] - problem.distance[agent, problem.starts[agent]]
        place = agent
        while place > 0 and slack[place - 1] > own:
            slack[place], order[place] = slack[place - 1], order[place - 1]
            place -= 1
        slack[place], order[place] = own, agent
    return order


@kernel
def plan_in_turn(problem, deadlines, may_wait, paths):
    """Routes for all agents, the tightest deadline first. An agent without a route goes first in the next attempt."""
    agents, steps = paths.shape
    order = by_slack(problem, deadlines)
    cells = len(problem.board.degree)
    occupied = np.empty((steps, cells), np.uint8)
    occupied[:] = 0
    for _ in range(agents + 2):
        stuck = -1
        for place in range(agents):
            agent = order[place]
            if not route(problem, agent, deadlines[agent], may_wait, occupied, paths[agent]):
                stuck = place
                break
            occupy(occupied, paths[agent], agent)
        if stuck < 0:
            return True
        if stuck == 0:
            return False
        occupied[:] = 0
        agent = order[stuck]
        for place in range(stuck, 0, -1):
            order[place] = order[place - 1]
        order[0] = agent
    return False
