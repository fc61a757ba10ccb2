"""The best-first search for the least sum of costs, which ``solve`` turns to only where sharing out delays drags on."""

from __future__ import annotations

import numpy as np
from brute_force import least_sum_of_costs
from numba import njit
from solver_boards import as_plain, random_instance, small_instance

from mapf_frozenlake.solvers import solve
from mapf_frozenlake.solvers.best_first import least_costs
from mapf_frozenlake.solvers.board import make_problem
from mapf_frozenlake.types import Instance

NONE, FOUND = 0, 1


@njit
def compiled(holes, starts, goals, may_wait, most):
    problem = make_problem(holes, holes.shape[0], holes.shape[1], starts, goals, len(starts))
    budget, costs = np.empty(1, np.int64), np.zeros(len(starts), np.int64)
    budget[0] = 1_000_000
    return least_costs(problem, may_wait, most, budget, costs), costs


def best_first(instance: Instance, waits: str, most: int) -> tuple[int, int]:
    status, costs = compiled(instance.holes, instance.starts, instance.goals, waits == "anywhere", most)
    return status, int(costs.sum())


def test_equals_brute_force():
    rng = np.random.default_rng(11)
    for _ in range(150):
        instance = small_instance(rng, max_side=3, max_agents=3)
        for waits in ("anywhere", "goals_only"):
            least = least_sum_of_costs(*as_plain(instance), waits)
            if least is None:
                assert best_first(instance, waits, 60)[0] == NONE
            else:
                assert best_first(instance, waits, least + 3) == (FOUND, least)
                assert best_first(instance, waits, least - 1)[0] == NONE


def test_equals_sharing_out_delays():
    rng = np.random.default_rng(12)
    for _ in range(60):
        instance = random_instance(rng, 5, 5, 4, 5)
        solution = solve(instance, "sum_of_costs")
        if solution.feasible:
            assert best_first(instance, "anywhere", solution.sum_of_costs) == (FOUND, solution.sum_of_costs)
