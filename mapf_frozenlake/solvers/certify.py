"""The certificate of an instance: is it solvable, in how few steps, and does it need a wait?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mapf_frozenlake.solvers.batch import in_threads
from mapf_frozenlake.solvers.bits import kernel
from mapf_frozenlake.solvers.board import GOALS_ONLY, make_problem
from mapf_frozenlake.solvers.decide import decide, nobody
from mapf_frozenlake.solvers.joint import FOUND, NONE, OUT_OF_BUDGET
from mapf_frozenlake.solvers.makespan import least_makespan, longest_distance, same_deadline

__all__ = ["FEASIBLE", "INFEASIBLE", "OUT_OF_BUDGET", "certify_batch", "certify_one", "longest_distance"]

FEASIBLE, INFEASIBLE = FOUND, NONE  # and OUT_OF_BUDGET, which is neither
UNKNOWN = -1
DEFAULT_BUDGET = 20_000_000  # expanded joint states: minutes at most


@kernel
def certify_problem(problem, budget):
    """(status, makespan, needs_wait): exact, or OUT_OF_BUDGET. ``budget[0]`` counts down expansions."""
    status, makespan, restless = least_makespan(problem, budget)
    if status == FOUND and not restless:
        deadlines, paths = same_deadline(len(problem.starts), makespan)
        status = decide(problem, deadlines, GOALS_ONLY, budget, paths, nobody(problem))
        if status != OUT_OF_BUDGET:
            return FEASIBLE, makespan, 0 if status == FOUND else 1
    if status != FOUND:
        return status, UNKNOWN, UNKNOWN
    return FEASIBLE, makespan, 0


@njit(cache=True)
def certify_one(holes, height, width, starts, goals, num_agents, budget):
    """(status, makespan, needs_wait) of one instance, for callers that are compiled themselves (the generator).

    ``holes[height.., width..]`` and ``starts[num_agents..]`` may be padding. The status is FEASIBLE, INFEASIBLE or
    OUT_OF_BUDGET; the other two are -1 unless it is FEASIBLE. Exact within ``budget`` expansions.
    """
    left = np.empty(1, np.int64)
    left[0] = budget
    return certify_problem(make_problem(holes, height, width, starts, goals, num_agents), left)


@njit(cache=True, nogil=True)
def _certify_range(holes, heights, widths, starts, goals, num_agents, budget, begin, end, status, makespan, needs_wait):
    for i in range(begin, end):
        status[i], makespan[i], needs_wait[i] = certify_one(
            holes[i], np.int64(heights[i]), np.int64(widths[i]), starts[i], goals[i], np.int64(num_agents[i]), budget
        )


class Certificates(NamedTuple):
    """Struct of arrays, one row per instance."""

    status: NDArray[np.int8]  # [n]: FEASIBLE, INFEASIBLE or OUT_OF_BUDGET
    makespan: NDArray[np.int32]  # [n]: the least possible; -1 unless feasible
    needs_wait: NDArray[np.int8]  # [n]: 0 or 1; -1 unless feasible


def certify_batch(
    holes: NDArray[np.bool_],  # [n, H, W]
    starts: NDArray[np.int16],  # [n, A, 2]: row, col
    goals: NDArray[np.int16],  # [n, A, 2]
    *,
    heights: NDArray[np.int16] | None = None,  # [n]; None: no padding
    widths: NDArray[np.int16] | None = None,
    num_agents: NDArray[np.int16] | None = None,
    budget: int = DEFAULT_BUDGET,
    threads: int | None = None,
) -> Certificates:
    """Certificates of many instances on all cores; exact, and the same on any number of threads."""
    count, max_height, max_width = holes.shape
    heights = np.full(count, max_height, np.int16) if heights is None else heights
    widths = np.full(count, max_width, np.int16) if widths is None else widths
    num_agents = np.full(count, starts.shape[1], np.int16) if num_agents is None else num_agents
    found = Certificates(np.empty(count, np.int8), np.empty(count, np.int32), np.empty(count, np.int8))

    def work(begin: int, end: int) -> None:
        _certify_range(holes, heights, widths, starts, goals, num_agents, budget, begin, end, *found)

    in_threads(work, count, threads)
    return found
