"""Means over seeds and their 95 % intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev, variance

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


def t_mean_over_cases(outcomes: Sequence[Sequence[float]]) -> Interval:
    """The mean of [seeds, cases] with the interval for other seeds and other cases, by Student's t.

    The variance is that of the seeds' means plus that of the cases' means, minus the noise that both contain; degrees of freedom by Satterthwaite.
    """
    seeds, cases = len(outcomes), len(outcomes[0])
    by_seed = [fmean(row) for row in outcomes]
    by_case = [fmean(column) for column in zip(*outcomes, strict=True)]
    mean = fmean(by_seed)
    if seeds < FEWEST or cases < FEWEST:
        return t_mean(by_seed)
    left = sum(
        (value - of_seed - of_case + mean) ** 2
        for row, of_seed in zip(outcomes, by_seed, strict=True)
        for value, of_case in zip(row, by_case, strict=True)
    )
    noise = left / ((seeds - 1) * (cases - 1) * seeds * cases)
    of_seeds, of_cases = variance(by_seed) / seeds, variance(by_case) / cases
    spread = max(of_seeds + of_cases - noise, of_seeds, of_cases)
    if spread == 0:
        return Interval(mean, mean, mean)
    freedom = (of_seeds + of_cases) ** 2 / (of_seeds**2 / (seeds - 1) + of_cases**2 / (cases - 1))
    half = t_quantile(0.975, int(freedom)) * spread**0.5
    return Interval(mean, mean - half, mean + half)


def half_width(deviation: float, n: int) -> float:
    """Half the width of Student's t interval for the mean of ``n`` values with this deviation."""
    return t_quantile(0.975, n - 1) * deviation / n**0.5
