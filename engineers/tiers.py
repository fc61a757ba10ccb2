"""The knowledge of an arm in a comparison. A difference between two arms is an engineer's gain only if their knowledge is equal.

A row's tier is the highest kind of information that went into it, including what it was tuned on.
"""

from __future__ import annotations

from enum import IntEnum


class Tier(IntEnum):
    """From nothing to the weights; each tier may use everything below it. 4 is not used."""

    NOTHING = 0
    TARGET = 1
    HORIZON = 2
    FAMILY = 3
    SLICE_SUCCESS = 5
    REPORT = 6
    CASES = 7
    WEIGHTS = 8

    @property
    def meaning(self) -> str:
        return MEANINGS[self]

    @property
    def reads(self) -> bool:
        """Whether it uses outcomes of this run's training."""
        return self >= Tier.SLICE_SUCCESS


UNKNOWN = Tier.CASES  # an engineer gets its whole report, failed cases included


MEANINGS = {
    Tier.NOTHING: "the config's class, its bounds and its default space",
    Tier.TARGET: "the target and its weights",
    Tier.HORIZON: "the number of rounds and the budget",
    Tier.FAMILY: "other seeds of the same task, on which it was tuned",
    Tier.SLICE_SUCCESS: "success for each slice",
    Tier.REPORT: "the whole report without its failed cases",
    Tier.CASES: "failed cases",
    Tier.WEIGHTS: "the trainee's weights and probabilities",
}
