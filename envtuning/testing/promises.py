"""A broken promise, in a sentence."""

from __future__ import annotations

SEED = 1  # the seed of all draws, games and trainings here; any would do


class BrokenPromise(AssertionError):
    """The promise, the finding, and the remedy."""


def promised(kept: bool, sentence: str) -> None:
    if not kept:
        raise BrokenPromise(sentence)
