"""The joint move on one board: slip, targets, conflicts in rounds, falls. It is pure; the batch and the judge call it.

Inside, a board is a flat padded grid: cell ``(row, col)`` lies at ``(row + pad) * stride + col + pad`` and the border is
``OFF``, so no bounds are checked and a move is one addition.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.types import COLLISIONS, DELTAS, Action, Collisions, Event
from mapf_frozenlake.world.given import raise_unless_one_of
from mapf_frozenlake.world.jit import allocating, subkernel
from mapf_frozenlake.world.pogema_rules import resolve_as_pogema
from mapf_frozenlake.world.rng import slip_uniform

ICE, HOLE, OFF = 0, 1, 2  # values of the padded terrain grid
BLOCK, END, PRIORITY, BLOCK_BOTH, SOFT = range(len(COLLISIONS))

_WAIT = int(Action.WAIT)
_NONE, _OFF_BOARD, _VERTEX = int(Event.NONE), int(Event.OFF_BOARD), int(Event.VERTEX)
_SWAP, _BLOCKED, _FELL = int(Event.SWAP), int(Event.BLOCKED), int(Event.HOLE)
_D_ROW = tuple(int(d) for d in DELTAS[:, 0])
_D_COL = tuple(int(d) for d in DELTAS[:, 1])


@subkernel
def slipped(action, draw, ahead):
    """FrozenLake's ice: ahead with chance ``ahead``, and to each side with half of the remaining chance."""
    if draw < ahead:
        return action
    if draw < ahead + (1.0 - ahead) / 2.0:
        return (action + 3) % 4
    return (action + 1) % 4


@allocating
def after_slip(actions, cells, keys, steps, ahead):
    """The slips of all agents: int64[n, A], the actions that have the same effect on ice that does not slip.

    actions  int64[n, A]; cells: int16[n, A, 2], row and col, -1 in empty slots; keys: uint64[n], of the episodes
    steps    int32[n]: the number of the coming step, from 1; ahead: float64[n], 1 on ice that does not slip
    """
    sent = actions.copy()
    for e in range(actions.shape[0]):
        for i in range(actions.shape[1]):
            if ahead[e] < 1.0 and actions[e, i] != _WAIT and cells[e, i, 0] >= 0:
                draw = slip_uniform(keys[e], steps[e], cells[e, i, 0], cells[e, i, 1])
                sent[e, i] = slipped(actions[e, i], draw, ahead[e])
    return sent


@subkernel
def move_agents(
    terrain, stride, pad, cells, actions, num_agents, key, step, ahead, collisions, targets, events, occupant, claims
):
    """Move the first ``num_agents`` agents at once; returns (whether a conflict happened, whether an agent fell).

    terrain   uint8[stride * rows]: ICE, HOLE or OFF
    cells     int32[A]: each agent's flat cell; replaced by its new cell. An agent on cell 0 has left the board: it stays there
    actions   int64[A]; ahead: chance that a moving agent goes in its chosen direction (1: no slip)
    collisions  BLOCK or END: the lake's rule; or one of POGEMA's. None: the lake's rule, and POGEMA's are not compiled
    targets   uint32[A], scratch. Unsigned, because numba looks at each signed index whether it counts from the array's end
    events    int8[A], written; NONE in empty slots
    occupant  int16[len(terrain)]: 1 + the agent on each cell, 0 if free; kept up to date
    claims    int16[len(terrain)], scratch: all zeros before and after
    """
    as_pogema = False
    if collisions is not None:
        as_pogema = collisions >= PRIORITY
    wall = HOLE if as_pogema else OFF
    for i in range(num_agents):
        here = cells[i]
        there = here
        event = _NONE
        action = actions[i]
        if action != _WAIT and here != 0:
            if ahead < 1.0:
                draw = slip_uniform(key, step, here // stride - pad, here % stride - pad)
                action = slipped(action, draw, ahead)
            there = here + _D_ROW[action] * stride + _D_COL[action]
            if terrain[np.uint32(there)] >= wall:  # off the board: stays
                there = here
                event = _OFF_BOARD
        targets[i] = there
        events[i] = event
    for slot in range(num_agents, len(events)):
        events[slot] = _NONE

    conflict = False
    if collisions is None:
        conflict = _resolve_conflicts(cells, targets, events, num_agents, occupant, claims)
    elif as_pogema:
        resolve_as_pogema(collisions - PRIORITY, cells, targets, events, num_agents, occupant, claims)
    else:
        conflict = _resolve_conflicts(cells, targets, events, num_agents, occupant, claims)

    fell = False
    for i in range(num_agents):
        occupant[cells[i]] = 0
    for i in range(num_agents):
        there = targets[i]
        cells[i] = there
        occupant[there] = i + 1
        if terrain[there] == HOLE:
            events[i] = _FELL
            fell = True
    occupant[0] = 0
    return conflict, fell


@subkernel
def _resolve_conflicts(cells, targets, events, num_agents, occupant, claims):
    """Send agents whose targets clash back to their own cells until no two clash; True if any did."""
    for i in range(num_agents):
        claims[targets[i]] += 1

    conflict = False
    for i in range(num_agents):
        if targets[i] == cells[i]:
            continue  # an agent that stayed and was bumped into is not at fault
        other = occupant[targets[i]] - 1
        if other >= 0 and targets[other] == cells[i]:
            events[i] = _SWAP
            conflict = True
        elif claims[targets[i]] > 1:
            events[i] = _VERTEX
            conflict = True

    if conflict:
        for i in range(num_agents):
            if events[i] == _SWAP or events[i] == _VERTEX:
                _send_back(i, cells, targets, claims)
        # Later rounds: two moving agents no longer share a target, so only followers of an agent that stays are caught.
        caught = True
        while caught:
            caught = False
            for i in range(num_agents):
                if targets[i] != cells[i] and claims[targets[i]] > 1:
                    events[i] = _BLOCKED
                    _send_back(i, cells, targets, claims)
                    caught = True

    for i in range(num_agents):
        claims[targets[i]] = 0
    return conflict


@subkernel
def _send_back(i, cells, targets, claims):
    claims[targets[i]] -= 1
    targets[i] = cells[i]
    claims[targets[i]] += 1


@allocating
def _joint_move(holes, positions, actions, key, step, ahead, collisions):
    """(new positions, events, the first agent that breaks the rules of the input, or -1)."""
    height, width = holes.shape
    num_agents = len(positions)
    stride = width + 2
    after = np.empty((num_agents, 2), dtype=np.int16)
    events = np.empty(num_agents, dtype=np.int8)
    terrain = np.full((height + 2) * stride, OFF, dtype=np.uint8)
    for row in range(height):
        for col in range(width):
            terrain[(row + 1) * stride + col + 1] = HOLE if holes[row, col] else ICE
    occupant = np.zeros(len(terrain), dtype=np.int16)
    claims = np.zeros(len(terrain), dtype=np.int16)
    cells = np.empty(num_agents, dtype=np.int32)
    targets = np.empty(num_agents, dtype=np.uint32)
    for i in range(num_agents):
        row, col = positions[i]
        on_board = 0 <= row < height and 0 <= col < width
        cells[i] = (row + 1) * stride + col + 1
        if not on_board or occupant[cells[i]] > 0 or not 0 <= actions[i] <= _WAIT:
            return after, events, i
        occupant[cells[i]] = i + 1
    move_agents(
        terrain, stride, 1, cells, actions, num_agents, key, step, ahead, collisions, targets, events, occupant, claims
    )
    for i in range(num_agents):
        after[i, 0] = cells[i] // stride - 1
        after[i, 1] = cells[i] % stride - 1
    return after, events, -1


def joint_move(
    holes: NDArray[np.bool_],  # [height, width]
    positions: NDArray[np.int16],  # [num_agents, 2]: row, col; no two on one cell
    actions: NDArray[np.int64],  # [num_agents]: 0 to 4
    *,
    key: int = 0,
    step: int = 0,
    ahead: float = 1.0,
    collisions: Collisions = "block",
) -> tuple[NDArray[np.int16], NDArray[np.int8]]:
    """One step of all agents on one board: (new positions, one event per agent). The arguments are not changed.

    With ``ahead`` below 1 the ice is slippery, and ``key``, ``step`` and the cell decide each agent's slip. ``collisions`` is a config's.
    Raises ``LakeError`` for agents off the board, two agents on one cell, or an action outside 0 to 4.
    """
    raise_unless_one_of("collisions", collisions, COLLISIONS)
    holes = np.ascontiguousarray(holes, dtype=np.bool_)
    cells = np.ascontiguousarray(positions, dtype=np.int16)
    joint = np.ascontiguousarray(actions, dtype=np.int64)
    if holes.ndim != 2 or joint.ndim != 1 or cells.shape != (len(joint), 2):
        raise LakeError(
            f"holes of shape {holes.shape}, positions {cells.shape}, actions {joint.shape}: "
            f"give (height, width), (num_agents, 2) and (num_agents,)"
        )
    after, events, stray = _joint_move(
        holes, cells, joint, np.uint64(key), step, float(ahead), COLLISIONS.index(collisions)
    )
    if stray >= 0:
        raise LakeError(
            f"agent {stray} at {tuple(cells[stray].tolist())} with action {joint[stray]}: on a {holes.shape[0]}×{holes.shape[1]} "
            f"board every agent needs a cell of its own and an action from 0 to {_WAIT}"
        )
    return after, events
