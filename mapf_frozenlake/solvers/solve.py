"""``solve`` and ``solve_batch``: exact plans, proofs that there is none, or an honest "out of budget"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numba import njit

from mapf_frozenlake.errors import LakeError, SolverBudgetExceeded
from mapf_frozenlake.solvers.batch import in_threads
from mapf_frozenlake.solvers.board import make_problem
from mapf_frozenlake.solvers.joint import FOUND, OUT_OF_BUDGET
from mapf_frozenlake.solvers.makespan import plan_of_least_makespan
from mapf_frozenlake.solvers.sum_of_costs import plan_of_least_sum_of_costs
from mapf_frozenlake.types import Action, Instance, Solution

Objective = Literal["makespan", "sum_of_costs"]
Waits = Literal["anywhere", "goals_only"]
DEFAULT_BUDGET = 20_000_000  # expanded joint states: minutes at most


@njit(cache=True, nogil=True)
def _solve(holes, starts, goals, by_makespan, may_wait, budget):
    """(status, paths int16[agents, steps + 1] of flat cells, expansions left)."""
    left = np.empty(1, np.int64)
    left[0] = budget
    problem = make_problem(holes, holes.shape[0], holes.shape[1], starts, goals, len(starts))
    if by_makespan:
        status, _, paths = plan_of_least_makespan(problem, may_wait, left)
    else:
        status, paths = plan_of_least_sum_of_costs(problem, may_wait, left)
    return status, paths, left[0]


def solve(
    instance: Instance, objective: Objective = "makespan", waits: Waits = "anywhere", budget: int = DEFAULT_BUDGET
) -> Solution:
    """A plan of least makespan or least sum of costs, or the proof that there is none; exact.

    With ``waits="goals_only"`` agents wait only on their own goals. Raises ``SolverBudgetExceeded`` after ``budget``
    expansions: never a wrong answer, never a hang.
    """
    found = _solve_or_stop(instance, objective, waits, budget)
    if isinstance(found, SolverBudgetExceeded):
        raise found
    return found


def solve_batch(
    instances: Sequence[Instance],
    objective: Objective = "makespan",
    waits: Waits = "anywhere",
    budget: int = DEFAULT_BUDGET,
    threads: int | None = None,
) -> list[Solution | SolverBudgetExceeded]:
    """``solve`` for many instances on all cores, the same on any number; one out of budget is data, not raised."""
    found: list[Solution | SolverBudgetExceeded] = [Solution(feasible=False)] * len(instances)

    def work(begin: int, end: int) -> None:
        for i in range(begin, end):
            found[i] = _solve_or_stop(instances[i], objective, waits, budget)

    in_threads(work, len(instances), threads)
    return found


def _solve_or_stop(
    instance: Instance, objective: Objective, waits: Waits, budget: int
) -> Solution | SolverBudgetExceeded:
    if objective not in ("makespan", "sum_of_costs"):
        raise LakeError(f'objective={objective!r}: one of "makespan", "sum_of_costs"')
    if waits not in ("anywhere", "goals_only"):
        raise LakeError(f'waits={waits!r}: one of "anywhere", "goals_only"')
    if budget < 1:
        raise LakeError(f"budget={budget}: give at least 1 expansion; the default is {DEFAULT_BUDGET:,}")
    status, paths, left = _solve(
        instance.holes, instance.starts, instance.goals, objective == "makespan", waits == "anywhere", budget
    )
    expansions = budget - left
    if status == OUT_OF_BUDGET:
        return SolverBudgetExceeded(
            f"budget={budget} was spent on {instance.num_agents} agents on a {instance.height}×{instance.width} lake "
            f"without a plan or a proof that there is none: raise it, or use pibt() for a plan that need not be optimal"
        )
    if status != FOUND:
        return Solution(feasible=False, expansions=expansions)
    plan = actions_of(paths, instance.width + 1)
    costs = [len(actions) for actions in plan]
    return Solution(True, plan, max(costs), sum(costs), expansions)


def actions_of(paths: np.ndarray, stride: int) -> tuple[tuple[int, ...], ...]:
    """Paths of flat cells as actions; an agent's list ends when it stays on its goal for good."""
    action_of = {-1: Action.LEFT, stride: Action.DOWN, 1: Action.RIGHT, -stride: Action.UP, 0: Action.WAIT}
    plan = []
    for moves in np.diff(paths.astype(np.int64), axis=1).tolist():
        while moves and moves[-1] == 0:
            moves.pop()
        plan.append(tuple(int(action_of[move]) for move in moves))
    return tuple(plan)
