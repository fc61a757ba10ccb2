"""``Row``: one line of a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Row:
    """One group of instances, one policy. Rates are in percent."""

    who: str
    group: dict[str, Any]  # {"agents": 3, "size": 4}; {} for all instances
    n: int
    valid: float
    optimal: float | None  # None if a least makespan is unknown
    valid_interval: tuple[float, float] | None = None  # Wilson, 95 %
    optimal_interval: tuple[float, float] | None = None
    failures: dict[str, int] = field(default_factory=dict)  # instances by failure kind
    regret: float | None = None  # mean makespan over the least possible, of valid plans
    sum_of_costs: float | None = None  # mean, of valid plans
    reported: bool = False  # published by others, on their own instances: not measured here
