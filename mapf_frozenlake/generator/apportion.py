"""Decides the kind of the j-th instance, so that quotas hold in every prefix and not only at the end.

A map size of share s is due ``s · t`` times in the first t instances. Its k-th turn has a window, which opens when
``s · t > k − 1`` and closes when ``s · t ≥ k``. Of all open windows, the one that closes first is served first. This meets
every window (earliest deadline first: Liu and Layland), so a size is never more than one off its due. Agent counts have
windows of the same kind. Of the first k instances of one size, ``wait_ratio · k``, rounded half up, need a wait.

Several sizes and counts may often come next without a missed deadline. Then the combination (size, its next label, count)
that lags most behind the product of its shares comes next. So sizes, labels and counts do not move in step.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.solvers.bits import entry, kernel

ANY, NO_WAIT, WAIT = -1, 0, 1  # the wait label of an instance, as in InstanceSet.needs_wait
_EPSILON = 1e-9  # rounding error that a whole-number quota may carry
_LOOKAHEAD = 256  # turns; beyond them the earliest deadline decides


@entry
def apportion(shares, wait_ratios, weights, n):
    """(slice, label, count) of instances 0 to n − 1, as three arrays. A shorter sequence is a prefix of a longer one.

    ``shares`` float64[S] and ``weights`` float64[C] are positive and sum to 1; ``wait_ratios`` float64[S], NaN for any.
    """
    slices, labels, counts = np.empty(n, np.int16), np.empty(n, np.int8), np.empty(n, np.int16)
    slices_taken, counts_taken = np.zeros(shares.size, np.int64), np.zeros(weights.size, np.int64)
    taken = np.zeros((shares.size, 3, weights.size), np.int64)
    may_slice, may_count = np.empty(shares.size, np.bool_), np.empty(weights.size, np.bool_)
    for j in range(n):
        _mark_allowed(shares, slices_taken, j + 1, may_slice)
        _mark_allowed(weights, counts_taken, j + 1, may_count)
        most = -np.inf
        for slice_ in range(shares.size):
            label = _label(wait_ratios[slice_], slices_taken[slice_])
            due = shares[slice_] * _label_share(wait_ratios[slice_], label) * (j + 1)
            for count in range(weights.size):
                lag = due * weights[count] - taken[slice_, label + 1, count]
                if may_slice[slice_] and may_count[count] and lag > most + _EPSILON:
                    most = lag
                    slices[j], labels[j], counts[j] = slice_, label, count
        slices_taken[slices[j]] += 1
        counts_taken[counts[j]] += 1
        taken[slices[j], labels[j] + 1, counts[j]] += 1
    return slices, labels, counts


@kernel
def _label(wait_ratio, rank):
    if math.isnan(wait_ratio):
        return ANY
    before = math.floor(wait_ratio * rank + 0.5 + _EPSILON)
    return WAIT if math.floor(wait_ratio * (rank + 1) + 0.5 + _EPSILON) > before else NO_WAIT


@kernel
def _label_share(wait_ratio, label):
    return 1.0 if label == ANY else wait_ratio if label == WAIT else 1.0 - wait_ratio


@kernel
def _mark_allowed(quotas, taken, turn, allowed):
    """Mark the entries that may take this 1-based turn: their window is open, and no other becomes late. There is always one."""
    first, first_deadline = -1, np.inf
    for one in range(quotas.size):
        if quotas[one] * turn > taken[one] + _EPSILON:
            deadline = math.ceil((taken[one] + 1) / quotas[one] - _EPSILON)
            if deadline < first_deadline:
                first, first_deadline = one, deadline
            allowed[one] = _is_safe(quotas, taken, turn, one)
        else:
            allowed[one] = False
    allowed[first] = True


@kernel
def _is_safe(quotas, taken, turn, choice):
    """Whether all deadlines can be met after this choice: at every later turn, no more turns are due than there are."""
    horizon = turn
    for one in range(quotas.size):
        ahead = taken[one] + (1 if one == choice else 0)
        horizon = max(horizon, math.ceil(ahead / quotas[one]))  # from here on no entry is ahead of its quota
    if horizon - turn > _LOOKAHEAD:
        return False
    for then in range(turn, horizon + 1):
        due = 0
        for one in range(quotas.size):
            owed = math.floor(quotas[one] * then + _EPSILON) - taken[one] - (1 if one == choice else 0)
            due += max(owed, 0)
        if due > then - turn:
            return False
    return True


def normalised(weights: list[float]) -> NDArray[np.float64]:
    """Weights as shares that sum to 1."""
    array = np.array(weights, np.float64)
    return array / array.sum()
