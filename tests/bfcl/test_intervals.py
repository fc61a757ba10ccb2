"""Both bootstrap intervals against a reading of them draw by draw."""

import math
import warnings

import numpy as np
import pytest

from benchmarks.bfcl.statistics import macro_interval, scenario_interval

VALUES = [0.11, 0.23, 0.37, 0.41, 0.59, 0.73, 0.97]
SCENARIOS = [7, 7, 3, 3, 3, 9, 11]
GROUPS = ["a", "b", "a", "b", "b", "a", "b"]


def slowly(mean, order, seed=0, draws=2_000):
    """95 % of the means over so many draws of as many scenarios as there are."""
    generator = np.random.default_rng(seed)
    means = []
    for row in generator.integers(len(order), size=(draws, len(order))):
        rows = [index for pick in row for index, one in enumerate(SCENARIOS) if one == order[pick]]
        means.append(mean(rows))
    return np.quantile(means, [0.025, 0.975])


@pytest.mark.parametrize("options", [{}, {"seed": 3, "draws": 40}])
def test_an_interval_is_of_the_means_over_drawn_scenarios(options):
    expected = slowly(lambda rows: np.mean([VALUES[row] for row in rows]), [7, 3, 9, 11], **options)
    assert scenario_interval(VALUES, SCENARIOS, **options) == pytest.approx(expected)


@pytest.mark.parametrize("options", [{}, {"seed": 3, "draws": 40}])
def test_a_macro_interval_is_of_the_means_over_the_means_of_the_groups_that_were_drawn(options):
    def mean(rows):
        groups = {GROUPS[row] for row in rows}
        return np.mean([np.mean([VALUES[row] for row in rows if GROUPS[row] == group]) for group in groups])

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a draw without a group nobody needs to hear
        found = macro_interval(VALUES, GROUPS, SCENARIOS, **options)
    assert found == pytest.approx(slowly(mean, [3, 7, 9, 11], **options))


def test_no_values_have_no_interval_and_each_value_needs_a_scenario():
    assert all(map(math.isnan, scenario_interval([], [])))
    with pytest.raises(ValueError, match="2 values and 1 scenarios"):
        scenario_interval([1.0, 0.0], [1])
