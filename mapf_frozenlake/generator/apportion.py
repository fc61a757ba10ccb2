"""Which kind of instance comes j-th: quotas that hold in every prefix, not only at the end.

Three nested questions, each answered so that no quota is ever off by more than one:

1. *Which map size?* Size s is due ``share_s · t`` times in the first t instances. Each of its turns has a window: the
   k-th may come once ``share_s · t > k − 1`` and must have come when ``share_s · t ≥ k``. Among the sizes whose window is
   open, the one whose window closes first has its turn (earliest deadline first, which meets every window: Liu and
   Layland). So a size is always within one of its due.
2. *Does it need a wait?* Of the first k instances of a size, ``wait_ratio · k``, rounded half up, do.
3. *How many agents?* Counts have windows as sizes do, over the whole sequence; among the counts that may be taken
   without anybody missing a deadline, the one that lags most within its (size, label) group is taken. So sizes, labels
   and counts do not march in step: every combination gets close to the product of its shares.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

ANY, NO_WAIT, WAIT = -1, 0, 1  # the wait label of an instance, as in InstanceSet.needs_wait
_EPSILON = 1e-9  # what floating point may add to a quota that is a whole number
_LOOKAHEAD = 1024  # turns; where a window reaches further, the earliest deadline decides


@njit(cache=True, nogil=True)
def apportion(shares, wait_ratios, weights, n):
    """(slice, label, count) of instances 0 to n − 1: three arrays; a longer sequence begins with a shorter one.

    ``shares`` float64[S] and ``weights`` float64[C] are positive and sum to 1; ``wait_ratios`` float64[S], NaN for any.
    """
    slices, labels, counts = np.empty(n, np.int16), np.empty(n, np.int8), np.empty(n, np.int16)
    slices_taken = np.zeros(shares.size, np.int64)
    counts_taken = np.zeros(weights.size, np.int64)
    group_taken = np.zeros((shares.size, 3, weights.size), np.int64)
    for j in range(n):
        piece = _first_due(shares, slices_taken, j + 1)
        label = _label(wait_ratios[piece], slices_taken[piece])
        slices_taken[piece] += 1
        group = group_taken[piece, label + 1]
        count = _count(weights, counts_taken, group, j + 1)
        counts_taken[count] += 1
        group[count] += 1
        slices[j], labels[j], counts[j] = piece, label, count
    return slices, labels, counts


@njit(cache=True, nogil=True)
def _label(wait_ratio, rank):
    if math.isnan(wait_ratio):
        return ANY
    before = math.floor(wait_ratio * rank + 0.5 + _EPSILON)
    return WAIT if math.floor(wait_ratio * (rank + 1) + 0.5 + _EPSILON) > before else NO_WAIT


@njit(cache=True, nogil=True)
def _is_open(quota, taken, turn):
    return quota * turn > taken + _EPSILON


@njit(cache=True, nogil=True)
def _first_due(quotas, taken, turn):
    """Of those whose window is open at this 1-based turn, the one whose window closes first; ties to the first."""
    best, best_deadline = -1, np.inf
    for one in range(quotas.size):
        if _is_open(quotas[one], taken[one], turn):
            deadline = math.ceil((taken[one] + 1) / quotas[one] - _EPSILON)
            if deadline < best_deadline:
                best, best_deadline = one, deadline
    return best


@njit(cache=True, nogil=True)
def _count(weights, taken, in_group, turn):
    """The count that lags most in its group, of those after which every deadline can still be met."""
    choice = _first_due(weights, taken, turn)
    if weights.size == 1:
        return choice
    group_turn = in_group.sum() + 1
    lag = weights[choice] * group_turn - in_group[choice]
    for one in range(weights.size):
        other_lag = weights[one] * group_turn - in_group[one]
        if (
            other_lag > lag + _EPSILON
            and _is_open(weights[one], taken[one], turn)
            and _is_safe(weights, taken, turn, one)
        ):
            choice, lag = one, other_lag
    return choice


@njit(cache=True, nogil=True)
def _is_safe(weights, taken, turn, choice):
    """Whether all deadlines can be met after this choice: never are more turns due than there are until then."""
    horizon = turn
    for one in range(weights.size):
        ahead = taken[one] + (1 if one == choice else 0)
        horizon = max(horizon, math.ceil(ahead / weights[one]))  # from here on nobody is ahead of its quota
    if horizon - turn > _LOOKAHEAD:
        return False
    for then in range(turn, horizon + 1):
        due = 0
        for one in range(weights.size):
            owed = math.floor(weights[one] * then + _EPSILON) - taken[one] - (1 if one == choice else 0)
            due += max(owed, 0)
        if due > then - turn:
            return False
    return True


def normalised(weights: list[float]) -> NDArray[np.float64]:
    """Weights as shares that sum to 1."""
    array = np.array(weights, np.float64)
    return array / array.sum()
