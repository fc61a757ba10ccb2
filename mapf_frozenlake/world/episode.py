"""The episode around the joint move: the horizon, success, what ends it for all, what it was worth."""

from __future__ import annotations

from mapf_frozenlake.types import NUM_ACTIONS, Event
from mapf_frozenlake.world.jit import kernel, part
from mapf_frozenlake.world.move import move_agents
from mapf_frozenlake.world.rewards import pay
from mapf_frozenlake.world.rng import episode_key
from mapf_frozenlake.world.state import OVER, RUNNING, place

_NONE, _BLOCKED = int(Event.NONE), int(Event.BLOCKED)


@part
def begin(state, e, row, boards, seed, number, rules):
    """Start episode ``number`` of the env with this seed on instance ``row`` of the boards, under the given rules."""
    holes, heights, widths, num_agents, starts, goals, makespan = boards
    ahead, horizon, reward, ends_on_conflict, hint = rules
    place(state, e, row, holes, heights, widths, num_agents, starts, goals, makespan)
    episode = state.episode[e]
    episode.key = episode_key(seed, number)
    episode.ahead = ahead
    episode.horizon = horizon if horizon > 0 else 4 * (episode.height + episode.width)
    episode.reward = reward
    episode.ends_on_conflict = ends_on_conflict
    episode.hint = hint
    episode.step = 0
    episode.violated = False
    episode.terminated = False
    episode.truncated = False
    episode.status = RUNNING


@part
def advance(state, e, actions):
    """One step of env ``e``: move, judge the episode, pay. A fall or success ends it for all, a conflict if so ruled."""
    episode = state.episode[e]
    count = episode.num_agents
    cells, goals, events = state.cells[e], state.goals[e], state.events[e]
    for i in range(count):
        state.before[e, i] = cells[i]
    episode.step += 1
    conflict, fell = move_agents(
        state.terrain[e], state.stride, state.pad, cells, actions[e], count, episode.key, episode.step, episode.ahead,
        state.targets[e], events, state.occupant[e], state.claims[e],
    )  # fmt: skip
    success = True
    for i in range(count):
        if cells[i] != goals[i]:
            success = False
        if events[i] != _NONE and events[i] != _BLOCKED:
            episode.violated = True
    pay(state, e, success)
    if success or fell or (conflict and episode.ends_on_conflict):
        episode.terminated = True
    elif episode.step >= episode.horizon:
        episode.truncated = True
    else:
        return
    episode.status = OVER
    episode.success = success
    episode.valid = success and not episode.violated
    episode.optimal = -1
    if episode.makespan >= 0 and episode.ahead >= 1.0:
        episode.optimal = episode.valid and episode.step == episode.makespan


@kernel
def first_bad_action(actions):
    """Flat index of the first action that is none of the five, -1 if all are."""
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
