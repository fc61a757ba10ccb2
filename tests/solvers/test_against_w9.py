"""On boards too large for brute force, sums of costs are those of an independent library of solvers."""

from __future__ import annotations

import numpy as np
import pytest
from brute_force import replay
from solver_boards import as_plain, random_instance

from mapf_frozenlake.solvers import solve

w9 = pytest.importorskip("w9", reason="needs w9-pathfinding (the dev extra)")


@pytest.mark.parametrize(
    ("side", "num_agents", "hole_ratio", "boards"),
    [
        (5, 3, 0.3, 80),
        (6, 4, 0.2, 80),
        (8, 3, 0.4, 80),
        (8, 4, 0.3, 60),
        (8, 5, 0.2, 60),
        (10, 5, 0.3, 60),
        (16, 6, 0.2, 40),
    ],
)
def test_sum_of_costs_equals_and_makespan_is_never_above(side: int, num_agents: int, hole_ratio: float, boards: int):
    rng = np.random.default_rng(side * 100 + num_agents)
    compared = 0
    for _ in range(boards):
        num_holes = round(hole_ratio * (side * side - 2 * num_agents))
        instance = random_instance(rng, side, side, num_agents, num_holes)
        cheap, quick = solve(instance, "sum_of_costs"), solve(instance)
        assert cheap.feasible == quick.feasible
        if not cheap.feasible:
            continue  # peers look for a plan until their cap
        assert replay(*as_plain(instance), cheap.plan) == (cheap.makespan, cheap.sum_of_costs)
        assert replay(*as_plain(instance), quick.plan) == (quick.makespan, quick.sum_of_costs)
        try:
            costs = w9.costs(instance, "CBS", seconds=0.3)
        except w9.OutOfTime:
            continue
        assert costs is not None
        assert cheap.sum_of_costs == sum(costs)
        assert quick.makespan <= max(costs)
        compared += 1
    assert compared >= boards // 3
