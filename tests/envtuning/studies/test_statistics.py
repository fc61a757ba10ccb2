"""The study's statistics against textbook values, brute force and simulated coverage."""

from __future__ import annotations

import numpy as np

from benchmarks.bfcl.seeds_and_cases import t_mean_over_cases
from envtuning.studies.intervals import t_mean


def test_the_interval_over_seeds_and_cases_covers_the_mean_of_all_seeds_and_all_cases():
    """Whichever of the two varies; an interval over seeds alone is far too narrow where the cases do."""
    rng = np.random.default_rng(1)
    for of_seeds, of_cases, noise in ((1.0, 0.0, 1.0), (0.0, 1.0, 1.0), (0.3, 1.5, 1.0), (0.0, 0.0, 1.0)):
        tables = [
            of_seeds * rng.normal(size=(5, 1)) + of_cases * rng.normal(size=(1, 40)) + noise * rng.normal(size=(5, 40))
            for _ in range(400)
        ]
        found = [t_mean_over_cases(table.tolist()) for table in tables]
        assert np.mean([one.low <= 0 <= one.high for one in found]) > 0.92
        over_seeds = [t_mean(table.mean(axis=1).tolist()) for table in tables]
        assert of_cases == 0 or np.mean([one.low <= 0 <= one.high for one in over_seeds]) < 0.8


def test_arms_that_never_differ_have_no_interval_wider_than_nothing():
    same = t_mean_over_cases([[0.0] * 4] * 5)
    assert (same.mean, same.low, same.high) == (0.0, 0.0, 0.0)
    assert t_mean_over_cases([[0.2, 0.4]]).low is None
