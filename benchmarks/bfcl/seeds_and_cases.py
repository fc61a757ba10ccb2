"""Means over seeds and cases, with intervals that hold for others of both."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, variance

from envtuning.studies.intervals import FEWEST, Interval, t_mean, t_quantile


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
