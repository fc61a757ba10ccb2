"""Certificates and solutions are those of a separate, slow, obvious search over every joint state."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from brute_force import all_makespans, is_ice, least_makespan, least_sum_of_costs, needs_wait, replay
from solver_boards import as_plain, random_instance, small_instance

from mapf_frozenlake.solvers import certify_batch, pibt, solve
from mapf_frozenlake.types import Instance

INFEASIBLE, FEASIBLE = 0, 1


def certificate(instance: Instance) -> tuple[int, int, int]:
    found = certify_batch(instance.holes[None], instance.starts[None], instance.goals[None], num_threads=1)
    return int(found.status[0]), int(found.makespan[0]), int(found.needs_wait[0])


def check_everything(instance: Instance) -> None:
    plain = as_plain(instance)
    least = least_makespan(*plain)
    expected = (INFEASIBLE, -1, -1) if least is None else (FEASIBLE, least, int(needs_wait(*plain)))
    assert certificate(instance) == expected
    assert pibt(instance).feasible == (least is not None)
    for waits in ("anywhere", "goals_only"):
        quick = solve(instance, "makespan", waits)
        cheap = solve(instance, "sum_of_costs", waits)
        assert quick.makespan == least_makespan(*plain, waits)
        assert cheap.sum_of_costs == least_sum_of_costs(*plain, waits)
        for solution in (quick, cheap):
            if solution.feasible:
                assert replay(*plain, solution.plan, waits) == (solution.makespan, solution.sum_of_costs)


@pytest.mark.parametrize("part", [0.15, pytest.param(1.0, marks=pytest.mark.prove)])
def test_everything_on_small_boards(part: float):
    rng = np.random.default_rng(1)
    for _ in range(int(600 * part)):
        check_everything(small_instance(rng, max_side=3, max_agents=3))
    for _ in range(int(200 * part)):
        check_everything(small_instance(rng, max_side=4, max_agents=2))


@pytest.mark.slow
@pytest.mark.parametrize("boards", [30, pytest.param(300, marks=pytest.mark.prove)])
def test_everything_on_boards_up_to_four_by_four(boards: int):
    rng = np.random.default_rng(2)
    for _ in range(boards):
        check_everything(small_instance(rng, max_side=4, max_agents=3))


@pytest.mark.parametrize(
    ("side", "num_agents", "boards"),
    [(3, 2, 40), (3, 3, 25), (4, 2, 25), pytest.param(4, 3, 2, marks=pytest.mark.prove), (3, 4, 3)],
)
def test_makespan_and_infeasibility_for_thousands_of_goals(side: int, num_agents: int, boards: int):
    """One breadth-first search from the starts knows the answer for every goal."""
    rng = np.random.default_rng(side * 10 + num_agents)
    kinds = set()
    for _ in range(boards):
        holes = random_instance(rng, side, side, num_agents, rng.integers(0, side * side - 2 * num_agents + 1)).holes
        ice = [cell for cell in itertools.product(range(side), repeat=2) if is_ice(holes, cell)]
        starts = tuple(ice[i] for i in rng.permutation(len(ice))[:num_agents])
        steps_to = all_makespans(holes.tolist(), starts)
        left = [cell for cell in ice if cell not in starts]
        for _ in range(60):
            goals = tuple(left[i] for i in rng.permutation(len(left))[:num_agents])
            status, makespan, _ = certificate(Instance(holes, starts, goals))
            kinds.add(status)
            assert (status == FEASIBLE) == (goals in steps_to)
            assert makespan == steps_to.get(goals, -1)
    assert kinds == {FEASIBLE, INFEASIBLE}
