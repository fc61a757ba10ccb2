"""The kernels that Python calls: begin some envs or step all, and write observations. One fused kernel per kind.

Threads share a batch through its ``turns``.
"""

from __future__ import annotations

import numpy as np

from mapf_frozenlake.world.episode import advance, begin, first_bad_action, open_rules
from mapf_frozenlake.world.jit import inlined, kernel
from mapf_frozenlake.world.layers import see_compact, see_ego, see_grid, see_pogema
from mapf_frozenlake.world.observe import open_sight, see_masks
from mapf_frozenlake.world.rng import pool_row
from mapf_frozenlake.world.state import FRESH, OVER, RUNNING
from mapf_frozenlake.world.table import open_boards, open_state
from mapf_frozenlake.world.turns import next_turn


@kernel
def choose_rows(table, envs, rows, pool_size):
    """The pool's rows for the next episodes of ``envs``."""
    state = open_state(table)
    for k in range(len(envs)):
        rows[k] = pool_row(state.episode[envs[k]].seed, state.episode[envs[k]].number, pool_size)


@kernel
def begin_envs(table, envs, rows, boards, rules, turns, pool_size, ready):
    """Start the next episode of ``envs`` on the boards' ``rows`` under ``rules``. The step kernels make them run.

    If the boards belong to a pool (``pool_size`` above 0, one thread), the rows are chosen here. If one is not ``ready``, it must
    be drawn first: then the result is -1, ``rows`` has the chosen rows, and no episode begins.
    """
    state, boards, rules = open_state(table), open_boards(boards), open_rules(rules)
    if pool_size > 0:
        all_ready = True
        for k in range(len(envs)):
            episode = state.episode[envs[k]]
            rows[k] = pool_row(episode.seed, episode.number, pool_size)
            all_ready &= ready[rows[k]]
        if not all_ready:
            return -1
    low, high = next_turn(turns, np.int64(0), np.int64(0), np.int64(0), len(envs))
    while low < high:
        for k in range(low, high):
            begin(state, envs[k], rows[k], boards, rules)
        low, high = next_turn(turns, low, high, np.int64(0), len(envs))
    return 0


@kernel
def keep_seen(envs, turns, seen, kept):
    """Copy the observations of some envs, ``seen`` [n, size], to ``kept`` [len(envs), size]."""
    low, high = next_turn(turns, np.int64(0), np.int64(0), np.int64(0), len(envs))
    while low < high:
        for k in range(low, high):
            for at in range(seen.shape[1]):
                kept[k, at] = seen[envs[k], at]
        low, high = next_turn(turns, low, high, np.int64(0), len(envs))
    return 0


@inlined
def _step_env(state, e, actions, every_rule):
    """Advance a running env; an env that began since the last step only starts to run. Returns 1 if its episode is over now."""
    episode = state.episode[e]
    if episode.status == FRESH:
        episode.status = RUNNING
        episode.team = 0.0
        state.events[e] = 0
        state.rewards[e] = 0.0
        return 0
    advance(state, e, actions, every_rule)
    return 1 if episode.status == OVER else 0


@inlined
def _shows(state, e, actions, move, every_rule):
    """(whether to show env ``e``, 1 if its episode is over). MOVE steps it, BEGUN shows envs that just began, ALL shows all envs."""
    if move == MOVE:
        return True, _step_env(state, e, actions, every_rule)
    if state.episode[e].status == FRESH:
        state.episode[e].status = RUNNING
        return True, 0
    return move == ALL, 0


BEGUN, MOVE, ALL = 0, 1, 2  # modes of a step kernel
_UNUSED = (0, 0, 0, 1)  # "compact" gets this instead of a sight, because an array takes longer to pass


@inlined
def _step_all(table, actions, turns, move, sight, out, see, every_rule):
    """Move and show all envs, or only show some. Returns the number of episodes that ended in this thread's turns, or
    -1 - k if action k is not one of the five; then no agent has moved."""
    state, sight = open_state(table), open_sight(sight, out)
    bad = first_bad_action(actions)
    if bad >= 0:
        return -1 - bad
    all_ended = np.int64(0)
    low, high = next_turn(turns, np.int64(0), np.int64(0), np.int64(0), len(out))
    while low < high:
        ended = np.int64(0)
        for e in range(low, high):
            shows, over = _shows(state, e, actions, move, every_rule)
            ended += over
            if shows:
                see(state, e, sight, out)
        all_ended += ended
        low, high = next_turn(turns, low, high, ended, len(out))
    return all_ended


# Two kernels for each observation. The first knows the lake's own rules alone, under which agents wait on their goals; most batches
# need no more. The others, of the same source, know every rule and take longer to compile.


@kernel
def step_compact(table, actions, turns, move, out):
    return _step_all(table, actions, turns, move, _UNUSED, out, see_compact, None)


@kernel
def step_grid(table, actions, turns, move, sight, out):
    return _step_all(table, actions, turns, move, sight, out, see_grid, None)


@kernel
def step_pogema(table, actions, turns, move, sight, out):
    return _step_all(table, actions, turns, move, sight, out, see_pogema, None)


@kernel
def step_ego(table, actions, turns, move, sight, out):
    return _step_all(table, actions, turns, move, sight, out, see_ego, None)


@kernel
def step_compact_by_every_rule(table, actions, turns, move, out):
    return _step_all(table, actions, turns, move, _UNUSED, out, see_compact, 1)


@kernel
def step_grid_by_every_rule(table, actions, turns, move, sight, out):
    return _step_all(table, actions, turns, move, sight, out, see_grid, 1)


@kernel
def step_pogema_by_every_rule(table, actions, turns, move, sight, out):
    return _step_all(table, actions, turns, move, sight, out, see_pogema, 1)


@kernel
def step_ego_by_every_rule(table, actions, turns, move, sight, out):
    return _step_all(table, actions, turns, move, sight, out, see_ego, 1)


@kernel
def mask_actions(table, out):
    """Whether each action of each agent stays on the board: out bool[n, A, 5]."""
    state = open_state(table)
    for e in range(len(out)):
        see_masks(state, e, out)
