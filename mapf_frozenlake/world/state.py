"""The data of a batch of lakes: plain arrays with one row per env, which the kernels read and write."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.types import MAX_SIZE, ON_GOAL, Event
from mapf_frozenlake.world.board_hash import UNHASHED, hash_of_board
from mapf_frozenlake.world.jit import subkernel
from mapf_frozenlake.world.move import OFF

# One env's scalars. `status` decides what the next call does.
EPISODE = np.dtype(
    [
        ("seed", np.int64),  # of the env
        ("number", np.int64),  # of the env's next episode
        ("key", np.uint64),  # of the episode's slip draws
        ("board", np.uint64),  # hash of the board with its starts and goals
        ("ended_board", np.uint64),  # the same, of the last finished episode
        ("team", np.float64),  # mean reward of the last step over the agents that take part
        ("ahead", np.float64),  # chance that a moving agent goes in its chosen direction; 1: not slippery
        ("throughput", np.float64),  # of the last finished episode: goals reached, over the horizon
        ("score", np.float64),  # likewise: part of the agents on their goals, without a violation of theirs
        ("horizon", np.int32),
        ("step", np.int32),  # steps taken in this episode
        ("makespan", np.int32),  # least possible makespan, certified; -1 unknown
        ("hint", np.float32),  # scale of the hint channels
        ("height", np.int16),
        ("width", np.int16),
        ("num_agents", np.int16),  # number of agents, which fill the first slots
        ("slice", np.int16),  # key of the config's slice from which the board was drawn; -1 if it was given
        ("ended_slice", np.int16),  # the same, of the last finished episode
        ("status", np.int8),  # UNBORN, RUNNING, OVER or FRESH
        ("reward", np.int8),  # index into rewards.REWARDS
        ("on_goal", np.int8),  # WAIT, FINISH or NEXT
        ("ended_on_goal", np.int8),  # the same, of the last finished episode
        ("collisions", np.int8),  # index into COLLISIONS
        ("violation", np.int8),  # Event code of the first violation in this episode; 0 without one
        ("failure", np.int8),  # of the last finished episode: that code, or MISSED; 0 if it was valid
        ("terminated", np.bool_),
        ("truncated", np.bool_),
        ("success", np.bool_),  # of the last finished episode: all agents on their goals at once
        ("valid", np.bool_),  # success without any violation
        ("optimal", np.int8),  # valid at the certified makespan; -1 if that is unknown or the world slips
    ],
    align=True,
)
RECORD = np.dtype(
    [  # what an episode keeps of an agent. One array, because each further one in the state takes the kernels longer to compile
        ("first_goal", np.int32),  # flat cell of its goal at the start of the episode
        ("num_reached", np.int32),  # goals reached in this episode; 0 under WAIT
        ("reached", np.bool_),  # whether the last step reached the goal; not kept up to date under WAIT
        ("at_fault", np.bool_),  # whether it has had a violation in this episode
    ],
    align=True,
)
MISSED = len(Event)  # in `failure`: no violation, but not all agents were on their goals
UNBORN, RUNNING, OVER, FRESH = 0, 1, 2, 3  # FRESH: begun, and not shown yet

WAIT, FINISH, NEXT = range(len(ON_GOAL))  # an agent on its goal stays, leaves the board, or gets a new goal
NOWHERE = 0  # flat cell of empty slots and of agents that have left the board; `place` is outside every window
OUT_OF_SIGHT = -4 * MAX_SIZE  # row and column of NOWHERE

FAR = np.int16(32767)  # distance of cells without a path to the goal


class State(NamedTuple):
    """n envs, A agent slots, padded boards of ``cells`` flat cells (see ``move``)."""

    episode: NDArray  # EPISODE[n]
    terrain: NDArray[np.uint8]  # [n, cells]: ICE, HOLE, OFF
    cells: NDArray[np.int32]  # [n, A]: flat cell of each agent, or NOWHERE
    before: NDArray[np.int32]  # [n, A]: its flat cell before the step
    starts: NDArray[np.int32]  # [n, A]: flat cell of each start
    goals: NDArray[np.int32]  # [n, A]: flat cell of each goal
    records: NDArray  # RECORD[n, A]
    targets: NDArray[np.uint32]  # [n, A]: scratch of the joint move
    occupant: NDArray[np.int16]  # [n, cells]: 1 + agent on the cell, 0 if free; always agrees with `cells`
    owner: NDArray[np.int16]  # [n, cells]: 1 + the agent whose goal the cell is, 0 without one, SEVERAL
    # [n, cells]: number of the connected lake of each cell, 0 without agents; [n, 0] if not needed.
    lake: NDArray[np.int16]
    claims: NDArray[np.int16]  # [n, cells]: scratch of the joint move, zeros between steps
    distance: NDArray[np.int16]  # [n, A, cells]: steps to the agent's goal, or FAR; [n, A, 0] if not needed
    events: NDArray[np.int8]  # [n, A]: Event codes of the last step
    rewards: NDArray[np.float64]  # [n, A]: of the last step; 0 in empty slots
    queue: NDArray[np.int32]  # [n, cells]: scratch of the breadth-first search; [n, 0] without distances and lakes
    place: NDArray[np.int16]  # [cells, 2]: row, col of a flat cell
    stride: int  # cells per row of the padded board
    pad: int  # border on each side


SEVERAL = -1  # in `owner`: the cell is the goal of several agents, which only NEXT allows


def make_state(
    num_envs: int, max_agents: int, max_size: int, pad: int, *, with_distance: bool, with_lakes: bool
) -> State:
    """Arrays for ``num_envs`` lakes of up to ``max_size`` a side, without boards yet."""
    stride = max_size + 2 * pad
    area = stride * stride
    slots = (num_envs, max_agents)
    place = np.stack(np.divmod(np.arange(area), stride), axis=1).astype(np.int16) - np.int16(pad)
    place[NOWHERE] = OUT_OF_SIGHT
    return State(
        episode=np.zeros(num_envs, EPISODE),
        terrain=np.full((num_envs, area), OFF, np.uint8),
        cells=np.zeros(slots, np.int32),
        before=np.zeros(slots, np.int32),
        starts=np.zeros(slots, np.int32),
        goals=np.zeros(slots, np.int32),
        records=np.zeros(slots, RECORD),
        targets=np.zeros(slots, np.uint32),
        occupant=np.zeros((num_envs, area), np.int16),
        owner=np.zeros((num_envs, area), np.int16),
        lake=np.zeros((num_envs, area if with_lakes else 0), np.int16),
        claims=np.zeros((num_envs, area), np.int16),
        distance=np.full((*slots, area if with_distance else 0), FAR, np.int16),
        events=np.zeros(slots, np.int8),
        rewards=np.zeros(slots, np.float64),
        queue=np.zeros((num_envs, area if with_distance or with_lakes else 0), np.int32),
        place=place,
        stride=stride,
        pad=pad,
    )


@subkernel
def place(state, e, row, boards):
    """Put instance ``row`` of the boards into env ``e``. The first env on it computes its hash, and later ones read it."""
    heights, widths, num_agents = boards.heights, boards.widths, boards.num_agents
    starts, goals = boards.starts, boards.goals
    stride, pad = state.stride, state.pad
    terrain, occupant, owner = state.terrain[e], state.occupant[e], state.owner[e]
    episode = state.episode[e]
    episode.height, episode.width = heights[row], widths[row]
    episode.num_agents, episode.makespan = num_agents[row], boards.makespan[row]
    episode.slice = boards.slices[row]
    terrain[:] = OFF
    occupant[:] = 0
    owner[:] = 0
    if boards.hashes[row] == UNHASHED:
        boards.hashes[row] = hash_of_board(boards, row)
    episode.board = boards.hashes[row]
    for r in range(heights[row]):
        base = (r + pad) * stride + pad
        for c in range(widths[row]):
            terrain[base + c] = 1 if boards.holes[row, r, c] else 0
    for i in range(state.cells.shape[1]):
        if i < num_agents[row]:
            state.cells[e, i] = (starts[row, i, 0] + pad) * stride + starts[row, i, 1] + pad
            state.goals[e, i] = (goals[row, i, 0] + pad) * stride + goals[row, i, 1] + pad
            occupant[state.cells[e, i]] = i + 1
            owner[state.goals[e, i]] = i + 1
        else:
            state.cells[e, i] = NOWHERE
            state.goals[e, i] = NOWHERE
        state.before[e, i] = state.cells[e, i]
        state.starts[e, i] = state.cells[e, i]
        record = state.records[e, i]
        record.first_goal = state.goals[e, i]
        record.num_reached = 0
        record.at_fault = False
    if state.distance.shape[2] > 0:
        for i in range(num_agents[row]):
            spread(terrain, stride, state.goals[e, i], state.distance[e, i], state.queue[e])


@subkernel
def spread(terrain, stride, goal, distance, queue):
    """Breadth-first steps to ``goal`` over ice; FAR without a path."""
    distance[:] = FAR
    queue[0] = goal
    distance[goal] = 0
    head, tail = 0, 1
    while head < tail:
        here = queue[head]
        head += 1
        for there in (here - 1, here + stride, here + 1, here - stride):
            if terrain[there] == 0 and distance[there] == FAR:
                distance[there] = distance[here] + 1
                queue[tail] = there
                tail += 1
