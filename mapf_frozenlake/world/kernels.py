"""The calls that Python makes: begin some envs, or step a range of them, and write what their agents see. Fused per kind.

Ranges ``[low, high)`` let threads share a batch; envs do not read each other, so any split gives the same bits.
"""

from __future__ import annotations

import numpy as np

from mapf_frozenlake.world.episode import advance, begin, first_bad_action
from mapf_frozenlake.world.jit import inlined, kernel
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


@kernel
def begin_envs(table, envs, rows, boards, rules):
    """Start the next episode of ``envs`` on the boards' ``rows`` under ``rules``. The step kernels let them run."""
    state, boards = open_state(table), open_boards(boards)
    for k in range(len(envs)):
        begin(state, envs[k], rows[k], boards, rules)


@inlined
def _step_env(state, e, actions):
    """Advance a running env; one that began since the last step only starts to run. 1 if its episode is over now."""
    episode = state.episode[e]
    if episode.status == FRESH:
        episode.status = RUNNING
        episode.team = 0.0
        state.events[e] = 0
        state.rewards[e] = 0.0
        return 0
    advance(state, e, actions)
    return 1 if episode.status == OVER else 0


@inlined
def _shows(state, e, actions, move):
    """(whether env ``e`` looks different now, 1 if its episode is over): stepped, or, unless ``move``, only begun."""
    if move:
        return True, _step_env(state, e, actions)
    if state.episode[e].status == FRESH:
        state.episode[e].status = RUNNING
        return True, 0
    return False, 0


# The step kernels move the envs of a range, or, unless ``move``, only show those that have just begun. They return how many
# episodes of the range this ended, or -1 - k if action k of all is none of the five; then nothing has moved.


@kernel
def step_compact(table, actions, low, high, move, out):
    state = open_state(table)
    ended = np.int64(0)
    bad = first_bad_action(actions)
    if bad >= 0:
        return -1 - bad
    for e in range(low, high):
        shows, over = _shows(state, e, actions, move)
        ended += over
        if shows:
            see_compact(state, e, out)
    return ended


@kernel
def step_grid(table, actions, low, high, move, one, out):
    state = open_state(table)
    ended = np.int64(0)
    bad = first_bad_action(actions)
    if bad >= 0:
        return -1 - bad
    for e in range(low, high):
        shows, over = _shows(state, e, actions, move)
        ended += over
        if shows:
            see_grid(state, e, one, out)
    return ended


@kernel
def step_ego(table, actions, low, high, move, sight, out):
    state = open_state(table)
    ended = np.int64(0)
    bad = first_bad_action(actions)
    if bad >= 0:
        return -1 - bad
    for e in range(low, high):
        shows, over = _shows(state, e, actions, move)
        ended += over
        if shows:
            see_ego(state, e, sight, out)
    return ended


@kernel
def mask_actions(table, out):
    """Per agent and action whether it stays on the board: out bool[n, A, 5]."""
    state = open_state(table)
    for e in range(len(out)):
        see_masks(state, e, out)
