"""A table of figures for the terminal."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of equal width: names to the left, figures to the right."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) if not column else cell.rjust(width) for column, (cell, width) in enumerate(zip(line, widths)))
        for line in lines
    )  # fmt: skip


def ranged(mean: float, low: float, high: float) -> str:
    """A mean and its interval."""
    return f"{mean:.3f} ({low:.3f}–{high:.3f})"


def percent(rate: float, interval: Sequence[float]) -> str:
    low, high = interval
    return f"{100 * rate:.1f} ({100 * low:.1f}–{100 * high:.1f})"
