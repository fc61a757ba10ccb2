"""Draws an episode's learner: a function of the families, the seed and the episode's number, for any number of environments."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from envtuning.dynamics.families import DEVELOPMENT, FAMILIES, HELD_OUT, SIZES, draw
from envtuning.dynamics.learners import Learners
from envtuning.errors import SpecError

SPLITS = {"development": DEVELOPMENT, "held-out": HELD_OUT}
SLICES, STAGES = SIZES.slices[1], SIZES.stages[1]  # at most
POOL = 512  # learners of each family that are drawn at once
EPISODES = 32  # of one environment from the same pool


def families_of(family: str | Sequence[str]) -> tuple[str, ...]:
    """One family, several, or a split: 'development', 'held-out'. Raises ``SpecError``."""
    named = SPLITS.get(family, (family,)) if isinstance(family, str) else tuple(family)
    if not named or (strangers := [name for name in named if name not in FAMILIES]):
        said = ", ".join([*SPLITS, *FAMILIES])
        raise SpecError(f"family={strangers[0] if named else family!r} is unknown: give one of {said}")
    return named


@lru_cache(maxsize=4)
def pool(named: tuple[str, ...], outside: bool, number: int) -> Learners:
    """``POOL`` learners of each family, one family after the other. Do not write to them."""
    drawn = [draw(name, POOL, [_digest(name), number], outside=outside) for name in named]
    if len(drawn) == 1:
        return drawn[0]
    fields = vars(drawn[0])
    return Learners(**{field: np.concatenate([getattr(one, field) for one in drawn]) for field in fields})


def place_of(seed: int, episode: int, families: int) -> tuple[int, int]:
    """The pool's number and the row of an environment's episode."""
    return episode // EPISODES, _digest(f"{seed}/{episode}") % (POOL * families)


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "big")


def room(runs: int) -> Learners:
    """Arrays for this many runs, to be filled from pools."""
    of_slices, pairs = (runs, SLICES), (runs, SLICES, SLICES)
    flat: dict[str, Any] = {
        name: np.zeros(of_slices) for name in ("weight", "start", "rate", "plateau", "ceiling", "forgetting")
    }
    ints: dict[str, Any] = {name: np.zeros(runs, dtype=np.int64) for name in ("stages", "cases")}
    return Learners(
        **flat, needs=np.zeros(pairs), transfer=np.zeros(pairs), cause=np.full((*of_slices, 3), 1 / 3), **ints
    )
