"""The least makespan: after some plan is known to exist, tries deadlines upwards from a lower bound."""

from __future__ import annotations

import numpy as np

from mapf_frozenlake.solvers.bits import inlined, kernel
from mapf_frozenlake.solvers.board import ANYWHERE, GOALS_ONLY, UNREACHABLE
from mapf_frozenlake.solvers.decide import decide, no_blame
from mapf_frozenlake.solvers.joint import FOUND, NONE
from mapf_frozenlake.solvers.pairs import pair_distance
from mapf_frozenlake.solvers.restless import restless_plan_exists
from mapf_frozenlake.solvers.routes import plan_in_turn
from mapf_frozenlake.solvers.solvable import solvable

UNKNOWN = -1
WORDS_FOR_ALL_PAIRS = 4  # on boards with more cells than these bits, only pairs in conflict are examined
DEADLINES_BEFORE_PROOF = 4


@kernel
def longest_distance(problem):
    """The makespan if agents ignored each other; -1 if an agent cannot reach its goal even then."""
    longest = np.int64(0)
    for agent in range(len(problem.starts)):
        distance = problem.distance[agent, problem.starts[agent]]
        if distance == UNREACHABLE:
            return -1
        longest = max(longest, np.int64(distance))
    return longest


@kernel
def longest_pair_distance(problem):
    """The largest makespan that any two agents alone would need; -1 if some two cannot both reach their goals."""
    longest = np.int64(0)
    for a in range(len(problem.starts)):
        for b in range(a):
            steps = pair_distance(problem, b, a)
            if steps < 0:
                return -1
            longest = max(longest, steps)
    return longest


@kernel
def same_deadline(agents, deadline):
    """One deadline for all agents, and an array for their paths."""
    deadlines = np.empty(agents, np.int64)
    deadlines[:] = deadline
    return deadlines, np.empty((agents, deadline + 1), np.int16)


@inlined
def makespan_in_turn(problem):
    """The least makespan if paths found in turn, without waits, meet the lower bound; else -1. This is cheap."""
    makespan = longest_distance(problem)
    if makespan >= 0:
        deadlines, paths = same_deadline(len(problem.starts), makespan)
        if plan_in_turn(problem, deadlines, GOALS_ONLY, paths):
            return makespan
    return UNKNOWN


@kernel
def least_makespan(problem, budget):
    """(status, makespan, restless): exact with waits anywhere. ``restless``: a plan was found that waits only on goals."""
    makespan = makespan_in_turn(problem)
    if makespan >= 0:
        return FOUND, makespan, True
    return searched_makespan(problem, budget)


@kernel
def searched_makespan(problem, budget):
    """``least_makespan`` of a problem that ``makespan_in_turn`` cannot decide."""
    agents = len(problem.starts)
    makespan = longest_distance(problem)
    if makespan < 0:
        return NONE, UNKNOWN, False
    tried = True  # in turn, with waits on goals only
    pairs_known = agents == 1 or len(problem.board.free) > WORDS_FOR_ALL_PAIRS
    # For two agents, the pair's distance is the answer.
    solvable_known = agents == 1 or (agents == 2 and not pairs_known)
    while True:
        deadlines, paths = same_deadline(agents, makespan)
        if not tried and plan_in_turn(problem, deadlines, GOALS_ONLY, paths):
            return FOUND, makespan, True
        tried = False
        if not pairs_known:
            pairs_known = True
            pairwise = longest_pair_distance(problem)
            if pairwise < 0:
                return NONE, UNKNOWN, False
            if pairwise > makespan:
                makespan = pairwise
                continue
        if plan_in_turn(problem, deadlines, ANYWHERE, paths):
            return FOUND, makespan, False
        status = decide(problem, deadlines, ANYWHERE, budget, paths, no_blame(problem))
        if status == NONE and not solvable_known:
            solvable_known = True
            status = solvable(problem, makespan, budget)
            if status == FOUND:
                status = NONE
            elif status == NONE:
                return NONE, UNKNOWN, False
        if status != NONE:
            return status, makespan, False
        makespan += 1


@kernel
def plan_of_least_makespan(problem, may_wait, budget):
    """(status, makespan, paths)."""
    agents = len(problem.starts)
    status, makespan, _ = least_makespan(problem, budget)
    deadlines, paths = same_deadline(agents, max(makespan, 0))
    failed = 0
    while status == FOUND:
        if plan_in_turn(problem, deadlines, may_wait, paths):
            return FOUND, makespan, paths
        status = decide(problem, deadlines, may_wait, budget, paths, no_blame(problem))
        if status != NONE:
            return status, makespan, paths
        failed += 1
        status = FOUND
        if failed == DEADLINES_BEFORE_PROOF:
            status = _restless(problem, budget)
        makespan += 1
        deadlines, paths = same_deadline(agents, makespan)
    return status, makespan, paths


@kernel
def _restless(problem, budget):
    """Whether some plan waits only on goals; two agents are often enough to rule it out."""
    agents = len(problem.starts)
    two = np.empty(2, np.int64)
    for a in range(agents):
        for b in range(a):
            two[0], two[1] = b, a
            status = restless_plan_exists(problem, two, budget)
            if status != FOUND:
                return status
    everyone = np.empty(agents, np.int64)
    for agent in range(agents):
        everyone[agent] = agent
    return restless_plan_exists(problem, everyone, budget)
