"""``solve`` and ``solve_batch``: exact plans, proofs that there is none, or "out of budget"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.errors import LakeError, SolverBudgetExceeded
from mapf_frozenlake.instance_set import InstanceSet
from mapf_frozenlake.solvers.bits import entry, kernel
from mapf_frozenlake.solvers.board import make_problem
from mapf_frozenlake.solvers.joint import FOUND, OUT_OF_BUDGET
from mapf_frozenlake.solvers.makespan import plan_of_least_makespan
from mapf_frozenlake.solvers.solutions import SolutionBatch, out_of_budget, plan_of
from mapf_frozenlake.solvers.sum_of_costs import plan_of_least_sum_of_costs
from mapf_frozenlake.threads import in_threads
from mapf_frozenlake.types import Action, Instance, Solution

Objective = Literal["makespan", "sum_of_costs"]
Waits = Literal["anywhere", "goals_only"]
DEFAULT_BUDGET = 20_000_000  # expanded joint states: minutes at most
QUICK_BUDGET = 20_000  # up to it the caller's thread searches, where Ctrl-C waits; beyond it another thread does
STOPPED = -(1 << 62)  # stops every search, even one that adds to its budget

_LEFT, _DOWN, _RIGHT, _UP, _WAIT = (int(action) for action in Action)


# Both kernels solve instances ``begin`` to ``end - 1``; ``left[i]`` is instance i's budget, and counts down. They return the
# actions of all plans, int8, agent after agent: instance i's begin at ``offsets[i]``, and ``lengths[i]`` has each agent's
# count. An agent's list ends when it stays on its goal for good. There is a kernel for each objective, so that only one
# has to be compiled.


@entry
def _least_makespans(
    holes, heights, widths, starts, goals, num_agents, may_wait, left, begin, end, status, lengths, offsets
):  # fmt: skip
    actions, used = np.empty(1024, np.int8), 0
    for i in range(begin, end):
        problem = _problem_of(holes, heights, widths, starts, goals, num_agents, i)
        status[i], _, paths = plan_of_least_makespan(problem, may_wait, left[i : i + 1])
        offsets[i] = used
        if status[i] == FOUND:
            actions, used = _keep(problem, paths, actions, used, lengths[i])
    return actions[:used]


@entry
def _least_sums_of_costs(
    holes, heights, widths, starts, goals, num_agents, may_wait, left, begin, end, status, lengths, offsets
):  # fmt: skip
    actions, used = np.empty(1024, np.int8), 0
    for i in range(begin, end):
        problem = _problem_of(holes, heights, widths, starts, goals, num_agents, i)
        status[i], paths = plan_of_least_sum_of_costs(problem, may_wait, left[i : i + 1])
        offsets[i] = used
        if status[i] == FOUND:
            actions, used = _keep(problem, paths, actions, used, lengths[i])
    return actions[:used]


@kernel
def _problem_of(holes, heights, widths, starts, goals, num_agents, i):
    return make_problem(
        holes[i], np.int64(heights[i]), np.int64(widths[i]), starts[i], goals[i], np.int64(num_agents[i])
    )


@kernel
def _keep(problem, paths, actions, used, lengths):
    """Append the plan's actions after the ``used`` ones; ``actions`` grows if needed."""
    agents = paths.shape[0]
    most = agents * (paths.shape[1] - 1)
    if used + most > len(actions):
        longer = np.empty(2 * (used + most), np.int8)
        for at in range(used):
            longer[at] = actions[at]
        actions = longer
    for agent in range(agents):
        steps = paths.shape[1] - 1
        while steps > 0 and paths[agent, steps - 1] == paths[agent, steps]:
            steps -= 1
        lengths[agent] = steps
        for t in range(steps):
            actions[used] = _action(np.int64(paths[agent, t + 1]) - np.int64(paths[agent, t]), problem.board.stride)
            used += 1
    return actions, used


@kernel
def _action(move, stride):
    """The action that leads from a flat cell to the one that is ``move`` further."""
    if move == 0:
        return _WAIT
    if move == 1 or move == -1:
        return _RIGHT if move == 1 else _LEFT
    return _DOWN if move == stride else _UP


def solve(
    instance: Instance, objective: Objective = "makespan", waits: Waits = "anywhere", budget: int = DEFAULT_BUDGET
) -> Solution:
    """A plan of least makespan or least sum of costs under ``on_goal="wait"``, or the proof that no plan exists; exact.

    With ``waits="goals_only"`` agents wait only on their own goals. Raises ``SolverBudgetExceeded`` after ``budget``
    expansions, so that it never hangs and never guesses. Ctrl-C stops it.
    """
    _raise_on_unknown(objective, waits, budget)
    if not isinstance(instance, Instance):
        raise LakeError(f"an instance is of type {type(instance).__name__}: give an Instance; solve_batch takes many")
    found = _solve_one(instance, objective, waits, min(budget, QUICK_BUDGET), num_threads=1)
    if isinstance(found, SolverBudgetExceeded) and budget > QUICK_BUDGET:
        found = _solve_one(instance, objective, waits, budget, num_threads=2)
    if isinstance(found, SolverBudgetExceeded):
        raise found
    return found


def _solve_one(
    instance: Instance, objective: Objective, waits: Waits, budget: int, num_threads: int
) -> Solution | SolverBudgetExceeded:
    """Solve one instance without a batch's arrays; with ``num_threads`` above 1, in another thread than the caller's."""
    # Copies, because an instance's own arrays are read-only: numba would compile everything again for them.
    arrays = (
        instance.holes.copy()[None],
        np.array([instance.height], np.int16),
        np.array([instance.width], np.int16),
        instance.starts.copy()[None],
        instance.goals.copy()[None],
        np.array([instance.num_agents], np.int16),
    )
    columns, chunks = _search(arrays, objective, waits, budget, num_threads)
    expansions, status = budget - int(columns.left[0]), columns.status[0]
    if status == OUT_OF_BUDGET:
        return out_of_budget(budget, instance.num_agents, instance.height, instance.width)
    if status != FOUND:
        return Solution(feasible=False, expansions=expansions)
    lengths = columns.lengths[0].tolist()
    return Solution(True, plan_of(chunks[0], 0, lengths), max(lengths), sum(lengths), expansions)


def solve_batch(
    instances: Sequence[Instance] | InstanceSet,
    objective: Objective = "makespan",
    waits: Waits = "anywhere",
    budget: int = DEFAULT_BUDGET,
    num_threads: int | None = None,
) -> SolutionBatch:
    """``solve`` for many instances, on all cores or ``num_threads``; the result does not depend on the number.

    The result holds arrays, and reads as a sequence of ``Solution`` and, for an instance that is out of budget,
    ``SolverBudgetExceeded``. Pass an ``InstanceSet``; other sequences are converted to one. Ctrl-C stops it.
    """
    _raise_on_unknown(objective, waits, budget)
    if not isinstance(instances, InstanceSet):
        if not len(instances):
            return SolutionBatch.empty(budget)
        instances = InstanceSet.from_instances(instances)
    names = ("holes", "heights", "widths", "starts", "goals", "num_agents")
    arrays = tuple(np.ascontiguousarray(getattr(instances, name)) for name in names)
    columns, chunks = _search(arrays, objective, waits, budget, num_threads)
    return SolutionBatch(
        status=columns.status,
        lengths=columns.lengths,
        expansions=budget - columns.left,
        num_agents=instances.num_agents,
        shapes=np.stack([instances.heights, instances.widths], axis=1),
        budget=budget,
        offsets=columns.offsets,
        chunks=chunks,
    )


class _Columns(NamedTuple):
    """The kernel's output, one row for each instance."""

    left: NDArray[np.int64]  # [n]: of the budget
    status: NDArray[np.int8]  # [n]
    lengths: NDArray[np.int32]  # [n, A]
    offsets: NDArray[np.int64]  # [n]


def _search(
    arrays: tuple[NDArray, ...], objective: Objective, waits: Waits, budget: int, num_threads: int | None
) -> tuple[_Columns, dict[int, NDArray[np.int8]]]:
    """The columns, and the plans' actions by the first instance of each range that one call solved."""
    count, agents = arrays[3].shape[:2]
    columns = _Columns(
        np.full(count, budget, np.int64),
        np.zeros(count, np.int8),
        np.zeros((count, agents), np.int32),
        np.zeros(count, np.int64),
    )
    left, status, lengths, offsets = columns
    chunks: dict[int, NDArray[np.int8]] = {}
    kernel_of = _least_makespans if objective == "makespan" else _least_sums_of_costs
    may_wait = waits == "anywhere"

    def work(begin: int, end: int) -> None:
        chunks[begin] = kernel_of(*arrays, may_wait, left, begin, end, status, lengths, offsets)

    def stop() -> None:
        left[:] = STOPPED

    # The caller's thread never compiles, because Python loses a Ctrl-C during one of the compiler's callbacks.
    in_threads(work, count, num_threads, stop=stop, here=bool(kernel_of.signatures))
    return columns, chunks


def _raise_on_unknown(objective: str, waits: str, budget: int) -> None:
    if objective not in ("makespan", "sum_of_costs"):
        raise LakeError(f'objective={objective!r}: one of "makespan", "sum_of_costs"')
    if waits not in ("anywhere", "goals_only"):
        raise LakeError(f'waits={waits!r}: one of "anywhere", "goals_only"')
    if budget < 1:
        raise LakeError(f"budget={budget}: give at least 1 expansion; the default is {DEFAULT_BUDGET:,}")


__all__ = ["DEFAULT_BUDGET", "OUT_OF_BUDGET", "Objective", "SolutionBatch", "Waits", "solve", "solve_batch"]
