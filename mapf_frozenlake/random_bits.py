"""``mix``: counter-based random bits, from which all draws of the world and of the generator are made.

Every draw is a pure function of a key and counters, so it is the same in any process, batch size or thread count.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mapf_frozenlake.numba_private import NO_COUNTS, SUBKERNEL

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MUL_1 = np.uint64(0xBF58476D1CE4E5B9)
_MUL_2 = np.uint64(0x94D049BB133111EB)


@njit(nogil=True, error_model="numpy", forceinline=True, **NO_COUNTS, **SUBKERNEL)
def mix(key, counter):
    """64 well-mixed bits of (key, counter): SplitMix64's finaliser, twice."""
    z = key + _GOLDEN * (counter + np.uint64(1))
    for _ in range(2):
        z = (z ^ (z >> np.uint64(30))) * _MUL_1
        z = (z ^ (z >> np.uint64(27))) * _MUL_2
        z = z ^ (z >> np.uint64(31))
    return z
