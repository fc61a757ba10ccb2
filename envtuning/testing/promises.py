"""A promise that is broken, in a sentence."""

from __future__ import annotations

SEED = 1  # of all that is drawn, played and trained here; another would do as well


class BrokenPromise(AssertionError):
    """What is promised, what was found, and what to do."""


def promised(kept: bool, sentence: str) -> None:
    if not kept:
        raise BrokenPromise(sentence)
