"""An episode around the joint move: its horizon, success, what ends it, and the rewards."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mapf_frozenlake.types import NUM_ACTIONS, Event
from mapf_frozenlake.world.goals import after_arrivals, note_arrivals, number_lakes
from mapf_frozenlake.world.jit import inlined, subkernel
from mapf_frozenlake.world.move import BLOCK_BOTH, END, PRIORITY, move_agents
from mapf_frozenlake.world.rewards import pay
from mapf_frozenlake.world.rng import episode_key
from mapf_frozenlake.world.state import FINISH, FRESH, MISSED, NEXT, OVER, WAIT, place

_NONE, _BLOCKED = int(Event.NONE), int(Event.BLOCKED)


class Rules(NamedTuple):
    """The config's rules for episodes. Kernels take them as float64[6], because a tuple's fields take longer to pass."""

    ahead: Any  # float64: chance that a moving agent goes in its chosen direction
    horizon: Any  # int32; 0: four times height plus width
    reward: Any  # int8: index into rewards.REWARDS
    collisions: Any  # int8: index into COLLISIONS
    hint: Any  # float32: scale of the hint channels
    on_goal: Any  # int8: WAIT, FINISH or NEXT


@inlined
def open_rules(rules):
    return Rules(
        rules[0], np.int32(rules[1]), np.int8(rules[2]), np.int8(rules[3]), np.float32(rules[4]), np.int8(rules[5])
    )


@subkernel
def begin(state, e, row, boards, rules):
    """Start the env's next episode on instance ``row`` of the boards."""
    place(state, e, row, boards)
    episode = state.episode[e]
    episode.key = episode_key(episode.seed, episode.number)
    episode.ahead = rules.ahead
    episode.horizon = rules.horizon if rules.horizon > 0 else 4 * (episode.height + episode.width)
    episode.reward = rules.reward
    episode.collisions = rules.collisions
    episode.hint = rules.hint
    episode.on_goal = rules.on_goal
    if episode.on_goal == NEXT:
        number_lakes(state.terrain[e], state.cells[e], episode.num_agents, state.stride, state.lake[e], state.queue[e])
    episode.step = 0
    episode.violation = _NONE
    episode.terminated = False
    episode.truncated = False
    episode.status = FRESH
    episode.number += 1


@subkernel
def advance(state, e, actions, every_rule):
    """One step of env ``e``: move, judge the episode, pay. A fall, success, or under ``collisions="end"`` a conflict ends it.

    Success: all agents are on their goals at once (WAIT), or have left the board (FINISH). NEXT ends by the horizon alone.
    ``every_rule`` None: for batches whose agents WAIT and collide by the lake's own rule; numba leaves out the other rules.
    """
    episode = state.episode[e]
    count = episode.num_agents
    cells, goals, events = state.cells[e], state.goals[e], state.events[e]
    for i in range(count):
        state.before[e, i] = cells[i]
    episode.step += 1
    if every_rule is None:
        conflict, fell = move_agents(
            state.terrain[e], state.stride, state.pad, cells, actions[e], count, episode.key, episode.step, episode.ahead,
            None, state.targets[e], events, state.occupant[e], state.claims[e],
        )  # fmt: skip
    else:
        conflict, fell = move_agents(
            state.terrain[e], state.stride, state.pad, cells, actions[e], count, episode.key, episode.step, episode.ahead,
            episode.collisions, state.targets[e], events, state.occupant[e], state.claims[e],
        )  # fmt: skip
    away = 0
    violation = _NONE  # of this step, the first by the order of the joint move's rules, which is that of the codes
    for i in range(count):
        away += cells[i] != goals[i]
        if events[i] != _NONE and events[i] != _BLOCKED:
            if violation == _NONE or events[i] < violation:
                violation = events[i]
            state.records[e, i].at_fault = True
    if episode.violation == _NONE:
        episode.violation = violation
    success = away == 0
    if every_rule is None:
        pay(state, e, success)
    else:
        waits = episode.on_goal == WAIT
        if not waits:
            away = note_arrivals(cells, goals, count, state.records[e])
            success = away == 0 and episode.on_goal == FINISH
        pay(state, e, success)
        if not waits:
            after_arrivals(state, e)
    if success or fell or (conflict and episode.collisions == END):
        episode.terminated = True
    elif episode.step >= episode.horizon:
        episode.truncated = True
    else:
        return
    arrived = 0
    if every_rule is None:
        for i in range(count):
            arrived += cells[i] == goals[i] and not state.records[e, i].at_fault
        _close(episode, success, arrived, 0, True)
    else:
        waits = episode.on_goal == WAIT
        if episode.on_goal == NEXT:
            success = away == 0 and not fell
        num_reached = 0
        for i in range(count):
            there = cells[i] == goals[i] if waits else state.records[e, i].num_reached > 0
            arrived += there and not state.records[e, i].at_fault
            num_reached += state.records[e, i].num_reached
        as_certified = waits and episode.collisions != PRIORITY and episode.collisions != BLOCK_BOTH
        _close(episode, success, arrived, num_reached, as_certified)


@subkernel
def _close(episode, success, arrived, num_reached, as_certified):
    """Note how the episode ended. ``as_certified``: its rules are those of the certified makespan."""
    episode.status = OVER
    episode.ended_slice = episode.slice
    episode.ended_board = episode.board
    episode.ended_on_goal = episode.on_goal
    episode.score = arrived / np.float64(episode.num_agents)
    episode.throughput = num_reached / np.float64(episode.horizon)
    episode.success = success
    episode.valid = success and episode.violation == _NONE
    episode.failure = episode.violation
    if not success and episode.violation == _NONE:
        episode.failure = MISSED
    episode.optimal = -1
    if episode.makespan >= 0 and episode.ahead >= 1.0 and as_certified:
        episode.optimal = episode.valid and episode.step == episode.makespan


@inlined
def first_bad_action(actions):
    """Flat index of the first action outside 0 to 4; -1 if all are legal."""
    flat = actions.reshape(-1)
    bad = 0
    for k in range(len(flat)):
        bad |= (flat[k] < 0) | (flat[k] >= NUM_ACTIONS)
    if not bad:
        return -1
    for k in range(len(flat)):
        if flat[k] < 0 or flat[k] >= NUM_ACTIONS:
            return k
    return -1
