"""How counts, costs and values are written for readers."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """``1 run``, ``1,200 runs``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def money(dollars: float | None) -> str:
    return "unknown" if dollars is None else f"${dollars:.4f}"


def short(value: object) -> str:
    """``0.1794`` as ``0.179``; what is no number with digits behind the point stays as it is."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)
