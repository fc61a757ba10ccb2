"""Figures in points, as the tables of the pages have them."""

from __future__ import annotations

from collections.abc import Mapping


def in_points(found: Mapping[str, float]) -> str:
    """A difference and its interval."""
    mean, low, high = (100 * found[key] for key in ("mean", "low", "high"))
    return f"{mean:+.1f} ({low:+.1f}, {high:+.1f})"
