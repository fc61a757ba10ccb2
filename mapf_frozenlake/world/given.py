"""Converts a caller's arguments to a batch's arrays; an error says what to pass instead."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.types import NUM_ACTIONS


def as_seeds(seeds: Any) -> NDArray[np.int64]:
    """Integers below 2**64, as 64 bits, because some clients draw seeds from this whole range."""
    for kind in (np.int64, np.uint64):
        with suppress(OverflowError):
            return np.asarray(seeds, dtype=kind).view(np.int64)
    raise LakeError(f"seeds={seeds}: give integers below 2**64")


def as_actions(actions: Any) -> NDArray[np.int64]:
    """Contiguous integers. The step kernel checks that they are among the five actions."""
    given = np.asarray(actions)
    if given.dtype.kind not in "iu":
        raise LakeError(f"actions of type {given.dtype}: give integers from 0 to {NUM_ACTIONS - 1}")
    return np.ascontiguousarray(given, dtype=np.int64)


def as_mask(mask: Any, num_envs: int) -> NDArray[np.bool_]:
    """One bool for each env. Integers are refused: they may be meant as indices."""
    given = np.asarray(mask)
    if given.shape != (num_envs,) or given.dtype != np.bool_:
        raise LakeError(f"mask of {given.dtype}{given.shape}: give bool({num_envs},), True for the envs meant")
    return given


def raise_unless_counts(least: int | None = None, **counts: Any) -> None:
    """Whole numbers; None is allowed if ``least`` is None."""
    for name, count in counts.items():
        if count is None and least is None:
            continue
        if not isinstance(count, int | np.integer):
            raise LakeError(f"{name}={count!r}: give a whole number")
        if least is not None and count < least:
            raise LakeError(f"{name}={count}: give at least {least}")


def raise_unless_one_of(name: str, value: object, known: Sequence[object]) -> None:
    if value not in known:
        raise LakeError(f"{name}={value!r}: give one of {', '.join(map(repr, known))}")
