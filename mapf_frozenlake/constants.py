"""The constants of the package: bounds, actions, events and kinds of failure."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

MIN_SIZE, MAX_SIZE = 2, 64

BoolGrid = NDArray[np.bool_]
Cells = NDArray[np.int16]  # [num_agents, 2]: row, col
Certificate = Literal["exact", "solvable", "reachable"]
OnGoal = Literal["wait", "finish", "next"]  # an agent on its goal stays, leaves the board, or gets a new goal
ON_GOAL: tuple[OnGoal, ...] = ("wait", "finish", "next")  # by code
# The lake's own two, which differ in whether a conflict ends the episode; and POGEMA's three, under which holes are walls.
Collisions = Literal["block", "end", "priority", "block_both", "soft"]
COLLISIONS: tuple[Collisions, ...] = ("block", "end", "priority", "block_both", "soft")  # by code


class Action(IntEnum):
    """Gymnasium FrozenLake's four moves in its order, and one more."""

    LEFT = 0
    DOWN = 1
    RIGHT = 2
    UP = 3
    WAIT = 4


NUM_ACTIONS = len(Action)
DELTAS: NDArray[np.int8] = np.array([[0, -1], [1, 0], [0, 1], [-1, 0], [0, 0]], dtype=np.int8)  # action -> row, col


class Event(IntEnum):
    """The event of one agent in one step. An agent has at most one event a step; SWAP outranks VERTEX."""

    NONE = 0
    OFF_BOARD = 1  # left the board, or ran into a wall: stays
    VERTEX = 2  # chose the same cell as another agent: stays
    SWAP = 3  # tried to exchange cells with another agent: stays
    BLOCKED = 4  # blocked by a conflict of other agents, without a fault of its own: stays
    HOLE = 5  # fell


VIOLATIONS = frozenset({Event.OFF_BOARD, Event.VERTEX, Event.SWAP, Event.HOLE})


class FailureKind(StrEnum):
    """The reason why a plan or an episode is not valid: the kind of its earliest violation, or the missing goal."""

    PARSE_ERROR = "parse_error"
    ILLEGAL_MOVE = "illegal_move"
    HOLE = "hole"
    CONFLICT = "conflict"
    GOAL_MISSED = "goal_missed"


FAILURE_OF_EVENT = {
    Event.OFF_BOARD: FailureKind.ILLEGAL_MOVE,
    Event.VERTEX: FailureKind.CONFLICT,
    Event.SWAP: FailureKind.CONFLICT,
    Event.HOLE: FailureKind.HOLE,
}
