"""How counts, costs, names and values are written for readers."""

from __future__ import annotations

from collections.abc import Callable

DIGITS = 17  # that tell any two floats apart


def counted(number: int, noun: str) -> str:
    """``1 run``, ``1,200 runs``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def in_words(name: str) -> str:
    """``env_steps`` as ``env steps``."""
    return name.replace("_", " ")


def money(dollars: float | None) -> str:
    return "unknown" if dollars is None else f"${dollars:.4f}"


def short(value: object, digits: int = 3, other: Callable[[object], str] = str) -> str:
    """``0.1794`` as ``0.179``; ``other`` writes what is no number with digits behind the point."""
    return f"{value:.{digits}g}" if isinstance(value, float) else other(value)


def apart(old: object, new: object, *, digits: int = 3, other: Callable[[object], str] = str) -> tuple[str, str]:
    """Two values as texts that differ if they do: each as ``short``, with as many more digits as it takes."""
    while old != new and short(old, digits, other) == short(new, digits, other) and digits < DIGITS:
        digits += 1
    return short(old, digits, other), short(new, digits, other)
