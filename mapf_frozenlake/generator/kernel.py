"""The draw loop: draws until a board passes, counts why the others did not."""

from __future__ import annotations

import numpy as np
from numba import njit

from mapf_frozenlake.generator.draw import all_can_reach, dig, place, stream_of
from mapf_frozenlake.generator.symmetry import key_of

# What became of a draw: columns of the tally.
ACCEPTED, NO_PLACE, UNREACHABLE, EXCLUDED, UNSOLVABLE, UNDECIDED, NEEDS_WAIT, NEEDS_NO_WAIT = range(8)
NUM_FATES = 8


@njit(cache=True, nogil=True)
def is_excluded(holes, size, starts, goals, agents, excluded):
    """Whether the board's key is in the sorted ``excluded``."""
    if excluded.size == 0:
        return False
    key = key_of(holes, size, size, starts, goals, agents)
    at = np.searchsorted(excluded, key)
    return at < excluded.size and excluded[at] == key


@njit(cache=True, nogil=True)
def fill_reachable(
    seed_key, indices, rows, size, agents, num_holes, min_distance, displacements, excluded, max_draws, holes, starts,
    goals, tally,
):  # fmt: skip
    """Instance ``indices[i]`` into row ``rows[i]`` of holes, starts and goals: every agent can reach its goal.

    ``tally`` int64[k, NUM_FATES] counts the draws of each; a row whose ACCEPTED stays 0 was not filled.
    """
    cells = np.empty(size * size, np.int32)
    lake_of, stack = np.empty(size * size, np.int32), np.empty(size * size, np.int32)
    for i in range(indices.size):
        stream, row = stream_of(seed_key, indices[i]), rows[i]
        cells[:] = np.arange(size * size)
        for _ in range(max_draws):
            if not place(stream, size, agents, min_distance, displacements, cells, starts[row], goals[row]):
                tally[i, NO_PLACE] += 1
                break
            dig(stream, size, agents, num_holes, cells, holes[row])
            if not all_can_reach(holes[row], size, starts[row], goals[row], agents, lake_of, stack):
                tally[i, UNREACHABLE] += 1
            elif is_excluded(holes[row], size, starts[row], goals[row], agents, excluded):
                tally[i, EXCLUDED] += 1
            else:
                tally[i, ACCEPTED] += 1
                break
