"""Shares of the data in proportion to scores, above a floor that every slice gets."""

from __future__ import annotations

from collections.abc import Mapping


def mixed_with_uniform(scores: dict[str, float], uniform_fraction: float) -> dict[str, float]:
    """Shares that sum to 1: in proportion to the scores, mixed with equal ones; all equal where no score is above 0."""
    total = sum(scores.values())
    if total <= 0:
        return dict.fromkeys(scores, 1.0 / max(len(scores), 1))
    return {
        name: uniform_fraction / len(scores) + (1 - uniform_fraction) * score / total for name, score in scores.items()
    }


def with_least(shares: Mapping[str, float], least: float) -> dict[str, float]:
    """The shares, which sum to 1, with the smallest raised to ``least``, for which the others pay in proportion."""
    low, scale = set[str](), 1.0
    while more := {name for name, share in shares.items() if name not in low and share * scale < least}:
        low |= more
        scale = (1 - least * len(low)) / max(sum(share for name, share in shares.items() if name not in low), 1e-12)
    return {name: least if name in low else share * scale for name, share in shares.items()}


def checked_floor(floor: float) -> float:
    """Raises ``ValueError`` for a number outside 0 to 1."""
    if not 0 <= floor <= 1:
        raise ValueError(f"floor={floor}: give the part of the data that is divided evenly, from 0 to 1")
    return floor
