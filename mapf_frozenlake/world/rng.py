"""Counter-based random numbers: every draw is a pure function of a key and counters.

So the same seed gives the same episode in any process, batch size or thread count.
"""

from __future__ import annotations

import numpy as np

from mapf_frozenlake.types import MAX_SIZE
from mapf_frozenlake.world.jit import subkernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MUL_1 = np.uint64(0xBF58476D1CE4E5B9)
_MUL_2 = np.uint64(0x94D049BB133111EB)
_EPISODE_SALT = np.uint64(0x6C616B65)
_POOL_SALT = np.uint64(0x706F6F6C)
_TO_UNIT = 1.0 / 9007199254740992.0  # 2**-53


@subkernel
def mix(key, counter):
    """64 well-mixed bits of (key, counter): SplitMix64's finaliser, twice."""
    z = key + _GOLDEN * (counter + np.uint64(1))
    for _ in range(2):
        z = (z ^ (z >> np.uint64(30))) * _MUL_1
        z = (z ^ (z >> np.uint64(27))) * _MUL_2
        z = z ^ (z >> np.uint64(31))
    return z


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
def pool_row(seed, episode, pool_size):
    """The row of an env's episode in a pool of ``pool_size``."""
    draw = mix(mix(np.uint64(seed), _POOL_SALT), np.uint64(episode))
    return np.int64(draw % np.uint64(pool_size))
