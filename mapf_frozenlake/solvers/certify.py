"""The certificate of an instance: is it solvable, in how few steps, and does it need a wait?

The search takes longer to compile than everything else, and most boards do not need it: paths that are found one agent
after the other already meet the lower bound. So the search is compiled separately at first use, and called by address.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import cfunc, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from mapf_frozenlake.numba_private import TypingError
from mapf_frozenlake.solvers.bits import entry, inlined
from mapf_frozenlake.solvers.board import GOALS_ONLY, Board, Problem, make_problem
from mapf_frozenlake.solvers.decide import decide, no_blame
from mapf_frozenlake.solvers.joint import FOUND, NONE, OUT_OF_BUDGET
from mapf_frozenlake.solvers.makespan import makespan_in_turn, same_deadline, searched_makespan
from mapf_frozenlake.threads import in_threads

FEASIBLE, INFEASIBLE = FOUND, NONE  # and OUT_OF_BUDGET
LEFT_OPEN = 3  # a search is needed, but `search` is NO_SEARCH
NO_SEARCH = 0  # instead of a search's address
UNKNOWN = -1
DEFAULT_BUDGET = 20_000_000  # expanded joint states: minutes at most


def _array(kind: types.Type, dimensions: int) -> types.Array:
    return types.Array(kind, dimensions, "C")


_BOARD = types.NamedTuple([_array(types.int16, 2), _array(types.int16, 1), _array(types.uint64, 1), types.int64], Board)
_PROBLEM = types.NamedTuple([_BOARD, _array(types.int16, 1), _array(types.int16, 1), _array(types.int16, 2)], Problem)
_SEARCH = types.UniTuple(types.int64, 3)(_PROBLEM, types.int64)


def _search(problem, budget):
    """``certify`` for boards that ``makespan_in_turn`` cannot decide."""
    left = np.empty(1, np.int64)
    left[0] = budget
    status, makespan, restless = searched_makespan(problem, left)
    if status != FOUND:
        return status, UNKNOWN, UNKNOWN
    if restless:
        return FEASIBLE, makespan, 0
    deadlines, paths = same_deadline(len(problem.starts), makespan)
    status = decide(problem, deadlines, GOALS_ONLY, left, paths, no_blame(problem))
    if status == OUT_OF_BUDGET:
        return status, UNKNOWN, UNKNOWN
    return FEASIBLE, makespan, 0 if status == FOUND else 1


@cache
def _compiled_search() -> Any:
    return cfunc(_SEARCH, cache=True)(_search)


def address_of_search() -> int:
    """The ``search`` for ``certify``. The first call on a machine takes seconds, because it compiles."""
    return _compiled_search().address


@intrinsic
def _search_at(typing_context, address, problem, budget):
    if problem != _PROBLEM:
        raise TypingError(f"the search takes {_PROBLEM}, not {problem}")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        takes = [context.get_value_type(kind) for kind in signature.args[1:]]
        kind = ir.FunctionType(context.get_value_type(signature.return_type), takes)
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])

    return _SEARCH.return_type(types.int64, *_SEARCH.args), generate


@inlined
def certify(problem, budget, search):
    """(status, makespan, needs_wait), for compiled callers: exact within ``budget`` expansions.

    The status is FEASIBLE, INFEASIBLE, OUT_OF_BUDGET or, with NO_SEARCH, LEFT_OPEN; the other two are -1 unless FEASIBLE.
    """
    makespan = makespan_in_turn(problem)
    if makespan >= 0:
        return FEASIBLE, makespan, 0
    if search == NO_SEARCH:
        return LEFT_OPEN, UNKNOWN, UNKNOWN
    return _search_at(search, problem, budget)


@entry
def _certify_range(
    holes, heights, widths, starts, goals, num_agents, budget, search, begin, end, status, makespan, needs_wait
):  # fmt: skip
    for i in range(begin, end):
        problem = make_problem(
            holes[i], np.int64(heights[i]), np.int64(widths[i]), starts[i], goals[i], np.int64(num_agents[i])
        )
        status[i], makespan[i], needs_wait[i] = certify(problem, budget, search)


@entry
def _certify_alone(holes, height, width, starts, goals, num_agents, budget, search):
    return certify(make_problem(holes, height, width, starts, goals, num_agents), budget, search)


def certify_one(
    holes: NDArray[np.bool_], height: int, width: int, starts: NDArray[np.int16], goals: NDArray[np.int16],
    num_agents: int, budget: int,
) -> tuple[int, int, int]:  # fmt: skip
    """(status, makespan, needs_wait) of one instance, with little overhead before the compiled code."""
    return _certify_alone(holes, height, width, starts, goals, num_agents, budget, address_of_search())


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
    num_threads: int | None = None,
) -> Certificates:
    """Certificates of many instances on all cores; exact, and the same on any number of threads."""
    count, max_height, max_width = holes.shape
    heights = np.full(count, max_height, np.int16) if heights is None else heights
    widths = np.full(count, max_width, np.int16) if widths is None else widths
    num_agents = np.full(count, starts.shape[1], np.int16) if num_agents is None else num_agents
    found = Certificates(np.empty(count, np.int8), np.empty(count, np.int32), np.empty(count, np.int8))
    search = address_of_search()

    def work(begin: int, end: int) -> None:
        _certify_range(holes, heights, widths, starts, goals, num_agents, budget, search, begin, end, *found)

    in_threads(work, count, num_threads)
    return found
