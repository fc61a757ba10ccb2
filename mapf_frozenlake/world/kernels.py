"""The calls that Python makes: begin some envs, or step a range of them, and write what their agents see. Fused per kind.

Ranges ``[low, high)`` let threads share a batch; envs do not read each other, so any split gives the same bits.
"""

from __future__ import annotations

import numpy as np

from mapf_frozenlake.world.episode import advance, begin, first_bad_action
from mapf_frozenlake.world.jit import kernel, part
from mapf_frozenlake.world.observe import see_compact, see_ego, see_grid, see_masks
from mapf_frozenlake.world.rng import pool_row
from mapf_frozenlake.world.state import FRESH, OVER, RUNNING
from mapf_frozenlake.world.table import open_boards, open_state


@kernel
def choose_rows(table, envs, pool_size, rows):
    """Into ``rows``: which of a pool's instances the next episode of each of ``envs`` is played on."""
    state = open_state(table)
    for k in range(len(envs)):
        episode = state.episode[envs[k]]
        rows[k] = pool_row(episode.seed, episode.number, pool_size)


@part
def _begin_env(state, e, row, boards, rules, status):
    episode = state.episode[e]
    begin(state, e, row, boards, rules)
    episode.status = status
    episode.number += 1


@part
def _step_env(state, e, actions):
    """Advance a running env; one that was reset for this step only starts to run. 1 if its episode is over now."""
    episode = state.episode[e]
    if episode.status == FRESH:
        episode.status = RUNNING
        episode.team = 0.0
        state.events[e] = 0
        state.rewards[e] = 0.0
        return 0
    advance(state, e, actions)
    return 1 if episode.status == OVER else 0


# Begin: the next episode of ``envs`` on the boards' ``rows`` under ``rules``; they get ``status``.
# Step: returns how many episodes of the range are over, or -1 - k if action k of all is none of the five; then nothing moved.


@kernel
def begin_compact(table, envs, rows, boards, rules, status, out):
    state, boards = open_state(table), open_boards(boards)
    for k in range(len(envs)):
        _begin_env(state, envs[k], rows[k], boards, rules, status)
        see_compact(state, envs[k], out)


@kernel
def step_compact(table, actions, low, high, out):
    state = open_state(table)
    over = np.int64(0)
    bad = first_bad_action(actions)
    if bad >= 0:
        return -1 - bad
    for e in range(low, high):
        over += _step_env(state, e, actions)
        see_compact(state, e, out)
    return over


@kernel
def begin_grid(table, envs, rows, boards, rules, status, one, out):
    state, boards = open_state(table), open_boards(boards)
    for k in range(len(envs)):
        _begin_env(state, envs[k], rows[k], boards, rules, status)
        see_grid(state, envs[k], one, out)


@kernel
def step_grid(table, actions, low, high, one, out):
    state = open_state(table)
    over = np.int64(0)
    bad = first_bad_action(actions)
    if bad >= 0:
        return -1 - bad
    for e in range(low, high):
        over += _step_env(state, e, actions)
        see_grid(state, e, one, out)
    return over


@kernel
def begin_ego(table, envs, rows, boards, rules, status, sight, out):
    state, boards = open_state(table), open_boards(boards)
    for k in range(len(envs)):
        _begin_env(state, envs[k], rows[k], boards, rules, status)
        see_ego(state, envs[k], sight, out)


@kernel
def step_ego(table, actions, low, high, sight, out):
    state = open_state(table)
    over = np.int64(0)
    bad = first_bad_action(actions)
    if bad >= 0:
        return -1 - bad
    for e in range(low, high):
        over += _step_env(state, e, actions)
        see_ego(state, e, sight, out)
    return over


@kernel
def mask_actions(table, out):
    """Per agent and action whether it stays on the board: out bool[n, A, 5]."""
    state = open_state(table)
    for e in range(len(out)):
        see_masks(state, e, out)
