"""Means over seeds and their 95 % intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

# Student's t at 97.5 %, by degrees of freedom; beyond the table the normal value is within 2 %.
T_975 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
NORMAL_975 = 1.96


@dataclass(frozen=True)
class Interval:
    """A mean and its 95 % interval; None where one observation, or none, says nothing about the spread."""

    mean: float
    low: float | None
    high: float | None

    def percent(self, *, signed: bool = False) -> str:
        """In percent: mean ± half the interval's width, which of two seeds may be wider than all that there is."""
        sign = "+" if signed else ""
        half = None if self.low is None or self.high is None else 50 * (self.high - self.low)
        spread = "" if half is None else " ± >100" if half > 100 else f" ± {half:.1f}"
        return f"{100 * self.mean:{sign}.1f}{spread}"


def t_mean(values: Sequence[float]) -> Interval:
    """The mean with Student's t interval."""
    mean = fmean(values)
    if len(values) < 2:
        return Interval(mean, None, None)
    half = half_width(stdev(values), len(values))
    return Interval(mean, mean - half, mean + half)


def half_width(deviation: float, n: int) -> float:
    """Half of Student's t interval of a mean of ``n`` values that spread so much."""
    factor = T_975[n - 2] if n - 1 <= len(T_975) else NORMAL_975
    return factor * deviation / n**0.5


def seeds_for(deviation: float, half: float) -> int:
    """The least n for which the interval of the mean is ± ``half`` at most, by the spread that a pilot had."""
    n = 2
    while half_width(deviation, n) > half:
        n += 1
    return n
