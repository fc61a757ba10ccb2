"""The calls that Python makes: begin some envs, or step a range of them, and write what their agents see. Fused per kind.

Ranges ``[low, high)`` let threads share a batch; envs do not read each other, so any split gives the same bits.
"""

from __future__ import annotations

from mapf_frozenlake.world.episode import advance, begin
from mapf_frozenlake.world.jit import kernel, part
from mapf_frozenlake.world.observe import see_compact, see_ego, see_grid
from mapf_frozenlake.world.state import FRESH, OVER, RUNNING


@kernel
def begin_envs(state, envs, rows, boards, seeds, numbers, rules, status):
    """Start the next episode of ``envs`` on the boards' ``rows``; they get ``status``, their counters move on."""
    for k in range(len(envs)):
        e = envs[k]
        begin(state, e, rows[k], boards, seeds[e], numbers[e], rules)
        state.episode[e].status = status
        numbers[e] += 1


@part
def step_env(state, e, actions):
    """Advance a running env; one that was reset for this step only starts to run. 1 if its episode is over now."""
    episode = state.episode[e]
    if episode.status == FRESH:
        episode.status = RUNNING
        state.events[e] = 0
        state.rewards[e] = 0.0
        return 0
    advance(state, e, actions)
    return 1 if episode.status == OVER else 0


@kernel
def step_compact(state, actions, low, high, out):
    over = 0
    for e in range(low, high):
        over += step_env(state, e, actions)
        see_compact(state, e, out)
    return over


@kernel
def step_grid(state, actions, low, high, one, out):
    over = 0
    for e in range(low, high):
        over += step_env(state, e, actions)
        see_grid(state, e, one, out)
    return over


@kernel
def step_ego(state, actions, low, high, sight, out):
    over = 0
    for e in range(low, high):
        over += step_env(state, e, actions)
        see_ego(state, e, sight, out)
    return over


@kernel
def look_compact(state, envs, out):
    for e in envs:
        see_compact(state, e, out)


@kernel
def look_grid(state, envs, one, out):
    for e in envs:
        see_grid(state, e, one, out)


@kernel
def look_ego(state, envs, sight, out):
    for e in envs:
        see_ego(state, e, sight, out)
