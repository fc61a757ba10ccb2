"""What follows when an agent reaches its goal: it leaves the board (FINISH), or gets the next goal (NEXT). WAIT needs nothing."""

from __future__ import annotations

import numpy as np

from mapf_frozenlake.world.jit import rare, subkernel
from mapf_frozenlake.world.rng import goal_draw
from mapf_frozenlake.world.state import FINISH, NOWHERE, SEVERAL, spread

# Most of these take rows of a state instead of the state, because each function that takes its twenty arrays compiles slowly.


@rare
def note_arrivals(cells, goals, count, records):
    """Mark which of an env's agents reached their goals in this step; returns the number of agents that never have."""
    left = 0
    for i in range(count):
        record = records[i]
        record.reached = cells[i] == goals[i] and cells[i] != NOWHERE
        if record.reached:
            record.num_reached += 1
        elif record.num_reached == 0:
            left += 1
    return left


@rare
def after_arrivals(state, e):
    """Remove the agents that reached their goals, or give them new goals. Other agents may have the same goal.

    Who had left before the step is not paid; the team's mean counts it all the same.
    """
    episode, goals, owner = state.episode[e], state.goals[e], state.owner[e]
    for i in range(episode.num_agents):
        if state.before[e, i] == NOWHERE:
            state.rewards[e, i] = 0.0
        if not state.records[e, i].reached:
            continue
        here = state.cells[e, i]
        if episode.on_goal == FINISH:
            state.occupant[e, here] = 0
            owner[here] = 0
            state.cells[e, i] = NOWHERE
            goals[i] = NOWHERE
        else:
            there = _next_goal(
                episode, i, state.records[e, i].num_reached, here, state.lake[e], state.stride, state.pad
            )
            goals[i] = there
            for cell in (here, there):
                owner[cell] = 0
                for j in range(episode.num_agents):
                    if goals[j] == cell:
                        owner[cell] = j + 1 if owner[cell] == 0 else SEVERAL
            if state.distance.shape[2] > 0:
                spread(state.terrain[e], state.stride, there, state.distance[e, i], state.queue[e])


@subkernel
def _next_goal(episode, agent, count, here, lake, stride, pad):
    """A uniformly random cell of the agent's lake other than its own, from its stream: a pure function of (env seed, episode, agent,
    count) and of the board."""
    area = np.uint64(np.int64(episode.height) * np.int64(episode.width))
    there = here
    tries = 0
    while there == here or lake[there] != lake[here]:
        cell = np.int64(goal_draw(episode.key, agent, count, tries) % area)
        row, col = cell // episode.width, cell % episode.width
        there = np.int32((row + pad) * stride + col + pad)
        tries += 1
    return there


@rare
def number_lakes(terrain, cells, count, stride, lake, stack):
    """Number an env's connected lakes that have agents; agents keep to theirs, so all other cells may keep 0."""
    lake[:] = 0
    for i in range(count):
        if lake[cells[i]] == 0:
            lake[cells[i]] = i + 1
            stack[0], waiting = cells[i], 1
            while waiting > 0:
                waiting -= 1
                here = stack[waiting]
                for there in (here - 1, here + stride, here + 1, here - stride):
                    if terrain[there] == 0 and lake[there] == 0:
                        lake[there] = i + 1
                        stack[waiting] = there
                        waiting += 1
