"""How counts and costs are written for readers."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """``1 run``, ``1,200 runs``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def money(dollars: float | None) -> str:
    return "unknown" if dollars is None else f"${dollars:.4f}"
