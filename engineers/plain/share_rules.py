"""Rules that divide the data by success alone, over arrays: baselines for engineers that read more.

Each takes the success of every slice after each stage so far, oldest first, and returns weights. The arrays may have any shape
whose last axis is the slices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
RatesByStage = Sequence[Array]  # success of each slice after every stage so far
Rule = Callable[[RatesByStage], Array]


def failure(rates: RatesByStage) -> Array:
    """The thermometer."""
    return 1 - rates[-1]


def give_up(rates: RatesByStage) -> Array:
    """The same, but without data for slices that never succeed and have not moved for two stages."""
    stuck = (rates[-1] < 0.05) & (len(rates) > 2) & (np.abs(rates[-1] - rates[max(len(rates) - 3, 0)]) < 0.05)
    return np.where(stuck, 0.0, 1 - rates[-1])


def progress(rates: RatesByStage) -> Array:
    """Teacher-student curriculum: by the size of the last changes, older ones fading."""
    found = np.zeros_like(rates[0])
    for before, after in pairwise(rates):
        found = 0.5 * found + 0.5 * np.abs(after - before)
    return found


def learnable(rates: RatesByStage) -> Array:
    """Sampling for learnability."""
    return rates[-1] * (1 - rates[-1])


RULES: dict[str, Rule] = {"failure": failure, "give-up": give_up, "progress": progress, "learnable": learnable}
