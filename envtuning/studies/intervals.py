"""Means over seeds and their 95 % intervals, by Student's t."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import atan, cos, pi, sin, sqrt
from statistics import fmean, stdev

FEWEST = 3  # observations
LARGEST = 1e9  # beyond any quantile that is asked for
HALVINGS = 200


@dataclass(frozen=True)
class Interval:
    """A mean and its 95 % interval; None if there are too few observations for one."""

    mean: float
    low: float | None
    high: float | None

    def percent(self, *, signed: bool = False) -> str:
        """In percent: mean ± half the interval's width. With few seeds, the interval may exceed 0 to 100 %."""
        sign = "+" if signed else ""
        half = None if self.low is None or self.high is None else 50 * (self.high - self.low)
        spread = "" if half is None else " ± >100" if half > 100 else f" ± {half:.1f}"
        digits = 2 if not signed and 0 < 100 * self.mean < 0.1 else 1  # .05 is not .1
        return f"{100 * self.mean:{sign}.{digits}f}{spread}"


def t_mean(values: Sequence[float]) -> Interval:
    """The mean with Student's t interval. With fewer than ``FEWEST`` values there is none: it would be far too wide or, by chance, of no width."""
    mean = fmean(values)
    if len(values) < FEWEST:
        return Interval(mean, None, None)
    half = half_width(stdev(values), len(values))
    return Interval(mean, mean - half, mean + half)


def half_width(deviation: float, n: int, probability: float = 0.975) -> float:
    """Half the width of Student's t interval for the mean of ``n`` values with this deviation; the ``probability`` is below its upper end."""
    return t_quantile(probability, n - 1) * deviation / n**0.5


@cache
def t_quantile(probability: float, freedom: int) -> float:
    """The t with this probability below it, for any whole number of degrees of freedom. The probability is inside (0, 1), the degrees of freedom at least 1."""
    if probability < 0.5:
        return -t_quantile(1 - probability, freedom)
    low, high = 0.0, LARGEST
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle, freedom) < probability else (low, middle)
    return high


def below(t: float, freedom: int) -> float:
    """The probability below t, for t ≥ 0 (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    angle = atan(t / sqrt(freedom))
    odd = freedom % 2
    term = cos(angle) if odd else 1.0
    total = 0.0
    for power in range(1 + odd, freedom, 2):
        total += term
        term *= power / (power + 1) * cos(angle) ** 2
    between = 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total
    return (1 + between) / 2
