"""The world's random draws: each is a pure function of a key and counters, so it is the same in any process or batch."""

from __future__ import annotations

import numpy as np

from mapf_frozenlake.random_bits import mix
from mapf_frozenlake.types import MAX_SIZE
from mapf_frozenlake.world.jit import subkernel

_EPISODE_SALT = np.uint64(0x6C616B65)
_POOL_SALT = np.uint64(0x706F6F6C)
_GOAL_SALT = np.uint64(0x676F616C)
_TO_UNIT = 1.0 / 9007199254740992.0  # 2**-53


@subkernel
def slip_uniform(key, step, row, col):
    """The slip draw in [0, 1) of the agent on (row, col) at this step. It does not depend on the agent's number."""
    counter = np.uint64(step) * np.uint64(MAX_SIZE * MAX_SIZE) + np.uint64(row * MAX_SIZE + col)
    return np.float64(mix(key, counter) >> np.uint64(11)) * _TO_UNIT


@subkernel
def episode_key(seed, episode):
    """The key of an env's episode, from the env's seed and the episode's number alone."""
    return mix(mix(np.uint64(seed), _EPISODE_SALT), np.uint64(episode))


@subkernel
def goal_draw(key, agent, count, tries):
    """64 bits for an agent's goal number ``count`` (0: its first) in the episode with this key."""
    stream = mix(mix(key, _GOAL_SALT), np.uint64(agent) << np.uint64(32) | np.uint64(count))
    return mix(stream, np.uint64(tries))


@subkernel
def pool_row(seed, episode, pool_size):
    """The row of an env's episode in a pool of ``pool_size``."""
    draw = mix(mix(np.uint64(seed), _POOL_SALT), np.uint64(episode))
    return np.int64(draw % np.uint64(pool_size))
