"""``SolutionBatch``: a solver's results for many instances, as arrays. ``Solution`` objects are made on access."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import overload

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.errors import SolverBudgetExceeded
from mapf_frozenlake.solvers.joint import FOUND, OUT_OF_BUDGET
from mapf_frozenlake.types import Solution

Found = Solution | SolverBudgetExceeded


def plan_of(actions: NDArray[np.int8], begin: int, lengths: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The plan whose agents have ``lengths`` actions each, stored one agent after the other from ``begin`` on."""
    flat = actions[begin : begin + sum(lengths)].tolist()
    ends = list(accumulate(lengths))
    return tuple(tuple(flat[end - steps : end]) for steps, end in zip(lengths, ends))


def out_of_budget(budget: int, agents: int, height: int, width: int) -> SolverBudgetExceeded:
    return SolverBudgetExceeded(
        f"budget={budget} was spent on {agents} agents on a {height}×{width} lake without a plan or a proof that there is "
        f"none: raise it, or use pibt() for a plan that need not be optimal"
    )


class SolutionBatch(Sequence[Found]):
    """A sequence with one entry for each instance, and its columns as arrays.

    feasible      bool[n]: a plan was found
    stopped       bool[n]: the budget was spent without a plan or a proof that no plan exists
    makespan      int32[n], -1 without a plan; sum_of_costs likewise
    lengths       int32[n, A]: number of actions of each agent
    expansions    int64[n]
    """

    def __init__(
        self,
        *,
        status: NDArray[np.int8],  # [n]: the solvers' status codes
        lengths: NDArray[np.int32],  # [n, A]
        expansions: NDArray[np.int64],  # [n]
        num_agents: NDArray[np.int16],  # [n]
        shapes: NDArray[np.int16],  # [n, 2]: height, width
        budget: int,
        offsets: NDArray[np.int64],  # [n]: where an instance's actions begin in its chunk
        chunks: Mapping[int, NDArray[np.int8]],  # by the first instance of the chunk
    ) -> None:
        self.feasible, self.stopped = status == FOUND, status == OUT_OF_BUDGET
        self.lengths, self.expansions, self.num_agents = lengths, expansions, num_agents
        self.makespan = np.where(self.feasible, lengths.max(axis=1, initial=0), -1).astype(np.int32)
        self.sum_of_costs = np.where(self.feasible, lengths.sum(axis=1), -1).astype(np.int32)
        self._shapes, self._budget, self._offsets = shapes, budget, offsets
        self._chunks = dict(sorted(chunks.items()))
        self._first = np.array(list(self._chunks), np.int64)
        self._made: dict[int, Found] = {}

    @classmethod
    def empty(cls, budget: int) -> SolutionBatch:
        none = np.zeros(0, np.int64)
        return cls(
            status=none.astype(np.int8), lengths=np.zeros((0, 1), np.int32), expansions=none,
            num_agents=none.astype(np.int16), shapes=np.zeros((0, 2), np.int16), budget=budget, offsets=none, chunks={},
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.feasible)

    @overload
    def __getitem__(self, index: int) -> Found: ...
    @overload
    def __getitem__(self, index: slice) -> list[Found]: ...
    def __getitem__(self, index: int | slice) -> Found | list[Found]:
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        row = int(index) + (len(self) if index < 0 else 0)
        if not 0 <= row < len(self):
            raise IndexError(f"solution {index} of {len(self)}: give an index from 0 to {len(self) - 1}")
        if row not in self._made:
            self._made[row] = self._make(row)
        return self._made[row]

    def plan(self, row: int) -> tuple[tuple[int, ...], ...] | None:
        """One tuple of actions for each agent of instance ``row``; None without a plan."""
        if not self.feasible[row]:
            return None
        chunk = self._chunks[int(self._first[np.searchsorted(self._first, row, side="right") - 1])]
        return plan_of(chunk, int(self._offsets[row]), self.lengths[row, : self.num_agents[row]].tolist())

    def _make(self, row: int) -> Found:
        if self.stopped[row]:
            return out_of_budget(self._budget, int(self.num_agents[row]), *self._shapes[row].tolist())
        expansions = int(self.expansions[row])
        plan = self.plan(row)
        if plan is None:
            return Solution(feasible=False, expansions=expansions)
        return Solution(True, plan, int(self.makespan[row]), int(self.sum_of_costs[row]), expansions)

    def __eq__(self, other: object) -> bool:
        """Equal if verdicts, plans and expansions are equal."""
        if not isinstance(other, SolutionBatch):
            return NotImplemented
        return (
            len(self) == len(other)
            and all(
                np.array_equal(getattr(self, name), getattr(other, name))
                for name in ("feasible", "stopped", "makespan", "sum_of_costs", "expansions")
            )
            and all(self.plan(row) == other.plan(row) for row in range(len(self)))
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        feasible, stopped = int(self.feasible.sum()), int(self.stopped.sum())
        return f"SolutionBatch({len(self)} instances: {feasible} solved, {len(self) - feasible - stopped} infeasible, {stopped} out of budget)"
