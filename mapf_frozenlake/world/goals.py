"""What follows when an agent reaches its goal: it leaves the board (FINISH), or gets the next goal (NEXT). WAIT needs nothing."""

from __future__ import annotations

import numpy as np

from mapf_frozenlake.world.jit import subkernel
from mapf_frozenlake.world.rng import goal_draw
from mapf_frozenlake.world.state import FINISH, NEXT, NOWHERE, SEVERAL, spread


@subkernel
def note_arrivals(state, e):
    """Mark which agents reached their goals in this step; returns the number of agents that never have."""
    left = 0
    for i in range(state.episode[e].num_agents):
        here = state.cells[e, i]
        reached = here == state.goals[e, i] and here != NOWHERE
        state.reached[e, i] = reached
        if reached:
            state.num_reached[e, i] += 1
        elif state.num_reached[e, i] == 0:
            left += 1
    return left


@subkernel
def after_arrivals(state, e):
    """Remove the agents that reached their goals, or give them new goals."""
    for i in range(state.episode[e].num_agents):
        if state.reached[e, i]:
            if state.episode[e].on_goal == FINISH:
                state.occupant[e, state.cells[e, i]] = 0
                state.owner[e, state.goals[e, i]] = 0
                state.cells[e, i] = NOWHERE
                state.goals[e, i] = NOWHERE
            else:
                _give_next_goal(state, e, i)


@subkernel
def _give_next_goal(state, e, i):
    """A uniformly random cell of the agent's lake other than its own, from its stream: a pure function of (env seed, episode, agent,
    count) and of the board. Other agents may have the same goal."""
    episode = state.episode[e]
    here = state.cells[e, i]
    area = np.uint64(np.int64(episode.height) * np.int64(episode.width))
    there = here
    tries = 0
    while there == here or state.lake[e, there] != state.lake[e, here]:
        cell = np.int64(goal_draw(episode.key, i, state.num_reached[e, i], tries) % area)
        row, col = cell // episode.width, cell % episode.width
        there = np.int32((row + state.pad) * state.stride + col + state.pad)
        tries += 1
    state.goals[e, i] = there
    state.owner[e, here] = _owner_of(state, e, here)
    state.owner[e, there] = _owner_of(state, e, there)
    if state.distance.shape[2] > 0:
        spread(state.terrain[e], state.stride, there, state.distance[e, i], state.queue[e])


@subkernel
def _owner_of(state, e, cell):
    owner = 0
    for j in range(state.episode[e].num_agents):
        if state.goals[e, j] == cell:
            owner = j + 1 if owner == 0 else SEVERAL
    return owner


@subkernel
def number_lakes(state, e):
    """Number the connected lakes that have agents; agents keep to theirs, so all other cells may keep 0."""
    if state.episode[e].on_goal != NEXT:
        return
    terrain, lake, stack, stride = state.terrain[e], state.lake[e], state.queue[e], state.stride
    lake[:] = 0
    for i in range(state.episode[e].num_agents):
        if lake[state.cells[e, i]] == 0:
            lake[state.cells[e, i]] = i + 1
            stack[0], waiting = state.cells[e, i], 1
            while waiting > 0:
                waiting -= 1
                here = stack[waiting]
                for there in (here - 1, here + stride, here + 1, here - stride):
                    if terrain[there] == 0 and lake[there] == 0:
                        lake[there] = i + 1
                        stack[waiting] = there
                        waiting += 1
