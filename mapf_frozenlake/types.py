"""The types of the world: instances, plans, solutions, verdicts; and, from ``constants``, actions, events, failure kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake import instance_json
from mapf_frozenlake.constants import (
    COLLISIONS,
    DELTAS,
    FAILURE_OF_EVENT,
    MAX_SIZE,
    MIN_SIZE,
    NUM_ACTIONS,
    ON_GOAL,
    VIOLATIONS,
    Action,
    BoolGrid,
    Cells,
    Certificate,
    Collisions,
    Event,
    FailureKind,
    OnGoal,
)
from mapf_frozenlake.errors import LakeError

__all__ = [
    "COLLISIONS",
    "DELTAS",
    "FAILURE_OF_EVENT",
    "MAX_SIZE",
    "MIN_SIZE",
    "NUM_ACTIONS",
    "ON_GOAL",
    "VIOLATIONS",
    "Action",
    "BoolGrid",
    "Cells",
    "Certificate",
    "Collisions",
    "Event",
    "FailureKind",
    "Instance",
    "OnGoal",
    "Plan",
    "Solution",
    "Verdict",
    "Violation",
]

Plan = Sequence[Sequence[int]]  # one action list per agent; an agent whose list has ended waits


@dataclass(frozen=True, eq=False, repr=False)
class Instance:
    """A lake with one start and one goal per agent, checked at construction and immutable.

    It carries certified facts; ``None`` means unknown.
    """

    holes: BoolGrid  # [height, width]
    starts: Cells  # [num_agents, 2]
    goals: Cells  # [num_agents, 2]
    makespan: int | None = None  # the least possible
    needs_wait: bool | None = None
    certificate: Certificate | None = None
    sample_id: str | None = None

    def __post_init__(self) -> None:
        facts = {name: getattr(self, name) for name in instance_json.FACTS}
        for name, value in instance_json.checked_facts(facts).items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "holes", _frozen(self.holes, np.bool_))
        object.__setattr__(self, "starts", _frozen(_whole("starts", self.starts), np.int16))
        object.__setattr__(self, "goals", _frozen(_whole("goals", self.goals), np.int16))
        self._raise_on_broken_rules()

    def __reduce__(self) -> tuple[type[Instance], tuple[Any, ...]]:
        """A copy is checked and immutable, too: NumPy forgets of a pickled array that it must not be written."""
        return type(self), tuple(getattr(self, one.name) for one in fields(self))

    def _raise_on_broken_rules(self) -> None:
        holes, starts, goals = self.holes, self.starts, self.goals
        if holes.ndim != 2 or not all(MIN_SIZE <= side <= MAX_SIZE for side in holes.shape):
            raise LakeError(f"holes of shape {holes.shape}: a lake has {MIN_SIZE} to {MAX_SIZE} rows and columns")
        if starts.ndim != 2 or starts.shape[1:] != (2,) or starts.shape != goals.shape or len(starts) == 0:
            raise LakeError(
                f"starts of shape {starts.shape} and goals of shape {goals.shape}: both must be (num_agents, 2), "
                "(row, col) each, at least one agent"
            )
        for name, cells in (("start", starts), ("goal", goals)):
            for agent, (row, col) in enumerate(cells.tolist()):
                if not (0 <= row < self.height and 0 <= col < self.width):
                    raise LakeError(
                        f"agent {agent}'s {name} ({row}, {col}) is off the board: rows are 0 to {self.height - 1}, "
                        f"columns 0 to {self.width - 1}"
                    )
                if holes[row, col]:
                    raise LakeError(f"agent {agent}'s {name} ({row}, {col}) is a hole: put it on ice")
        endpoints = [tuple(cell) for cell in (*starts.tolist(), *goals.tolist())]
        if len(set(endpoints)) != len(endpoints):
            shared = next(cell for cell in endpoints if endpoints.count(cell) > 1)
            raise LakeError(f"cell {shared} is used twice: every start and every goal needs a cell of its own")

    @property
    def height(self) -> int:
        return self.holes.shape[0]

    @property
    def width(self) -> int:
        return self.holes.shape[1]

    @property
    def num_agents(self) -> int:
        return len(self.starts)

    def key(self) -> bytes:
        """Equal for equal boards, starts and goals; certified facts and names may differ."""
        shape = np.array([self.height, self.width, self.num_agents], dtype=np.int16)
        return shape.tobytes() + np.packbits(self.holes).tobytes() + self.starts.tobytes() + self.goals.tobytes()

    def to_json(self) -> str:
        """One line of JSON, certified facts included; ``from_json`` reads it back."""
        facts = {name: getattr(self, name) for name in instance_json.FACTS}
        return instance_json.text_of(self.holes, self.starts, self.goals, facts)

    @classmethod
    def from_json(cls, given: str | bytes | Mapping[str, Any]) -> Instance:
        """The instance from the JSON of ``to_json``, text or parsed; other input raises ``LakeError``."""
        return cls(**instance_json.fields_of(given))

    def __repr__(self) -> str:
        facts = f", makespan={self.makespan}, needs_wait={self.needs_wait}"
        name = "" if self.sample_id is None else f", sample_id={self.sample_id!r}"
        return f"Instance({self.height}×{self.width}, {self.num_agents} agents{facts}{name})"

    def _repr_svg_(self) -> str:
        """The display in a notebook: the board with all agents on their starts."""
        from mapf_frozenlake.render.svg import svg
        from mapf_frozenlake.world.snapshot import Snapshot

        return svg(Snapshot(holes=self.holes, positions=self.starts, goals=self.goals, starts=self.starts))

    def __eq__(self, other: object) -> bool:
        return self.key() == other.key() if isinstance(other, Instance) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key())


def _whole(name: str, cells: object) -> NDArray:
    """Cells as given; what int16 would round or overflow is refused."""
    try:
        given = np.asarray(cells)
    except ValueError:
        raise LakeError(f"{name}={cells!r}: give one (row, col) for each agent") from None
    fits = given.dtype.kind in "iu" and not ((given < -MAX_SIZE) | (given > MAX_SIZE)).any()
    if given.size and not fits:
        raise LakeError(f"{name}={given.tolist()}: rows and columns are whole numbers from 0 to {MAX_SIZE - 1}")
    return given


def _frozen(array: object, dtype: type[np.generic]) -> NDArray:
    try:
        copy = np.array(array, dtype=dtype, order="C")
    except ValueError:
        raise LakeError(f"holes={array!r:.80}: make all rows equally long") from None
    copy.setflags(write=False)
    return copy


@dataclass(frozen=True)
class Solution:
    """A solver's result. If it proved that no plan exists, ``feasible`` is False and the rest is None."""

    feasible: bool
    plan: tuple[tuple[int, ...], ...] | None = None
    makespan: int | None = None
    sum_of_costs: int | None = None
    expansions: int = 0


@dataclass(frozen=True)
class Violation:
    """One agent's fault in one step of a plan."""

    agent: int
    step: int  # 0-based index into the plan
    cell: tuple[int, int]  # the agent's cell before the step
    target: tuple[int, int]  # its chosen cell (may be off the board)
    event: Event
    kind: FailureKind
    others: tuple[int, ...] = ()  # the other parties of a conflict


@dataclass(frozen=True)
class Verdict:
    """The judge's findings after it played a plan to its end."""

    valid: bool
    optimal: bool | None  # None if the least makespan is unknown
    failure: FailureKind | None  # None if valid
    violations: tuple[Violation, ...]
    makespan: int | None  # None unless all agents end on their goals
    sum_of_costs: int | None
    makespan_gap: int | None = None  # above the optimum, if both are known
    sum_of_costs_gap: int | None = None
    agents_on_goal: tuple[bool, ...] = ()
    note: str | None = None  # why ``optimal`` is unknown, and how to get it

    @property
    def score(self) -> float:
        """Part of the agents that end on their goals without a violation of theirs; 1 if valid."""
        at_fault = {violation.agent for violation in self.violations}
        there = [on_goal and agent not in at_fault for agent, on_goal in enumerate(self.agents_on_goal)]
        return sum(there) / max(1, len(there))
