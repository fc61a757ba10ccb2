"""What the best schedule that reads nothing needs to come as far: on curves whose answer is known, and on the runs of a comparison."""

from __future__ import annotations

import numpy as np
import pytest

from envtuning.studies.budget import in_words, needed
from envtuning.studies.closed_loop import Gain
from tests.envtuning.studies.test_table import outcome

RISING = [(100, 0.1), (200, 0.3), (400, 0.7)]


@pytest.mark.parametrize(
    ("success", "spent"), [(0.05, 100), (0.1, 100), (0.2, 150), (0.3, 200), (0.4, 250), (0.7, 400), (0.71, None)]
)
def test_a_curve_is_read_on_straight_lines(success, spent):
    assert needed([RISING], success) == (spent if spent is None else pytest.approx(spent))


def test_the_first_crossing_counts_where_a_curve_falls_again():
    assert needed([[(100, 0.0), (200, 0.6), (300, 0.2), (400, 0.8)]], 0.5) == pytest.approx(100 + 100 * 0.5 / 0.6)


def test_saturating_curves_need_what_their_formula_says():
    rng = np.random.default_rng(0)
    for rate in rng.uniform(0.5, 4.0, 20):
        spent = np.linspace(0, 1, 200)
        curves = [
            [(1000 * at, height * (1 - np.exp(-rate * at))) for at in spent] for height in rng.uniform(0.4, 0.9, 5)
        ]
        height = np.mean([curve[-1][1] for curve in curves]) / (1 - np.exp(-rate))
        wanted = height * (1 - np.exp(-rate * 0.6))
        assert needed(curves, wanted) == pytest.approx(600, rel=1e-3)


def test_seeds_are_paired_and_validated_at_their_own_times():
    early, late = [(100, 0.2), (300, 0.4)], [(200, 0.2), (400, 0.4)]
    assert needed([early, late], 0.25) == pytest.approx(200)  # (.3 + .2) / 2


def test_the_sentence_compares_the_reader_with_the_schedule_it_is_measured_against():
    found = Gain(arm="rules", above="ladder", mean=0.1, low=0.0, seeds=1)
    ladder = [outcome("ladder", 1, 0.5, curve=RISING), outcome("ladder", 2, 0.5, curve=[(100, 1.0)])]

    def said(last):
        return in_words([*ladder, outcome("rules", 1, 0.6, curve=[(400, last)])], found, 400)

    assert "50 %" in said(0.3)
    assert "within the budget" in said(0.8)
    assert in_words([outcome("ladder", 1, 0.5), outcome("rules", 1, 0.6)], found, 400) == ""  # stored without curves
    assert in_words(ladder, None, 400) == ""
