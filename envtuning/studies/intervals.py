"""Means over seeds and their 95 % intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev, variance

# Student's t at 97.5 %, by degrees of freedom; beyond the table it is expanded around the normal value.
T_975 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
NORMAL_975 = NormalDist().inv_cdf(0.975)


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


def t_mean_over_cases(outcomes: Sequence[Sequence[float]]) -> Interval:
    """The mean of [seeds, cases] with the interval for other seeds and other cases, by Student's t.

    The variances of the seeds' and of the cases' means add up, less the noise that is in both; degrees of freedom as by Satterthwaite.
    """
    seeds, cases = len(outcomes), len(outcomes[0])
    by_seed = [fmean(row) for row in outcomes]
    by_case = [fmean(column) for column in zip(*outcomes, strict=True)]
    mean = fmean(by_seed)
    if seeds < 2 or cases < 2:
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
    half = t_975(int(freedom)) * spread**0.5
    return Interval(mean, mean - half, mean + half)


def t_975(freedom: int) -> float:
    """Student's t at 97.5 %: of the table, beyond it by Cornish and Fisher's expansion, which is exact to five digits there."""
    if freedom <= len(T_975):
        return T_975[freedom - 1]
    z = NORMAL_975
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / freedom**power for power, term in enumerate(terms, start=1))


def half_width(deviation: float, n: int) -> float:
    """Half of Student's t interval of a mean of ``n`` values that spread so much."""
    return t_975(n - 1) * deviation / n**0.5


def seeds_for(deviation: float, half: float) -> int:
    """The least n for which the interval of the mean is ± ``half`` at most, by the spread that a pilot had."""
    n = 2
    while half_width(deviation, n) > half:
        n += 1
    return n
