"""Means over seeds and their 95 % intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from envtuning.studies.student_t import t_quantile

FEWEST = 3  # observations


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


def half_width(deviation: float, n: int) -> float:
    """Half the width of Student's t interval for the mean of ``n`` values with this deviation."""
    return t_quantile(0.975, n - 1) * deviation / n**0.5
