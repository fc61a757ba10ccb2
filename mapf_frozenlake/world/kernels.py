"""The calls that Python makes: begin some envs, or step a range of them, and write what their agents see. Fused per kind.

Ranges ``[low, high)`` let threads share a batch; envs do not read each other, so any split gives the same bits.
"""

from __future__ import annotations

import numpy as np

from mapf_frozenlake.world.episode import advance, begin, first_bad_action, open_rules
from mapf_frozenlake.world.jit import inlined, kernel
from mapf_frozenlake.world.observe import open_sight, see_compact, see_ego, see_grid, see_masks
from mapf_frozenlake.world.rng import pool_row
from mapf_frozenlake.world.state import FRESH, OVER, RUNNING
from mapf_frozenlake.world.table import open_boards, open_state


@kernel
def begin_envs(table, envs, rows, boards, rules, pool_size, ready):
    """Start the next episode of ``envs`` on the boards' ``rows`` under ``rules``. The step kernels let them run.

    Where the boards are a pool's (``pool_size`` above 0), the rows are chosen here. One that is not ``ready`` has to be
    drawn first: then the answer is False, ``rows`` says which were chosen, and nothing has begun.
    """
    state, boards, rules = open_state(table), open_boards(boards), open_rules(rules)
    if pool_size > 0:
        all_ready = True
        for k in range(len(envs)):
            episode = state.episode[envs[k]]
            rows[k] = pool_row(episode.seed, episode.number, pool_size)
            all_ready &= ready[rows[k]]
        if not all_ready:
            return False
    for k in range(len(envs)):
        begin(state, envs[k], rows[k], boards, rules)
    return True


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
    """(whether env ``e`` is to be shown, 1 if its episode is over): MOVE steps it, BEGUN shows who just began, ALL everybody."""
    if move == MOVE:
        return True, _step_env(state, e, actions)
    if state.episode[e].status == FRESH:
        state.episode[e].status = RUNNING
        return True, 0
    return move == ALL, 0


BEGUN, MOVE, ALL = 0, 1, 2  # what a step kernel does
# The step kernels move and show the envs of a range, or only show some of them. They return how many episodes of the range
# this ended, or -1 - k if action k of all is none of the five; then nothing has moved.


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
def step_ego(table, actions, low, high, move, sight, ink, out):
    state, sight = open_state(table), open_sight(sight, ink)
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
