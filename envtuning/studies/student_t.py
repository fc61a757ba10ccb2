"""Quantiles of Student's t distribution for any whole number of degrees of freedom."""

from __future__ import annotations

from functools import cache
from math import atan, cos, pi, sin, sqrt

LARGEST = 1e9  # beyond any quantile that is asked for
HALVINGS = 200


@cache
def t_quantile(probability: float, freedom: int) -> float:
    """The t with this probability below it. The probability is inside (0, 1), the degrees of freedom at least 1."""
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
