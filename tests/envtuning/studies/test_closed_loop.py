"""The headroom estimator against simulated studies whose true value is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as students_t

from envtuning.studies.closed_loop import (
    Gain,
    gain,
    in_words,
    lower_bound,
)
from envtuning.studies.intervals import t_quantile

STUDIES = 2000


def simulated(rng, engineer, schedules, seeds=10, spread=0.06):
    """Success of arms with known means: a seed moves all arms, and moves each a little differently."""
    level = rng.normal(0, spread, seeds)
    arms = {"engineer": engineer} | {f"schedule {number}": mean for number, mean in enumerate(schedules)}
    return {name: mean + level + rng.normal(0, spread / 2, seeds) for name, mean in arms.items()}


@pytest.mark.parametrize(
    ("engineer", "schedules"),
    [
        (0.60, [0.55]),
        (0.60, [0.60]),  # nothing to gain
        (0.60, [0.60, 0.60, 0.60, 0.60, 0.60]),
        (0.60, [0.60, 0.40, 0.30]),  # one schedule does as well, the others are far below
        (0.60, [0.50, 0.52, 0.54, 0.53, 0.51]),
        (0.50, [0.55, 0.40]),  # the best schedule is above
    ],
)
@pytest.mark.parametrize("seeds", [5, 10])
def test_the_bound_lies_below_the_true_value_in_at_least_94_percent(engineer, schedules, seeds):
    rng = np.random.default_rng([seeds, int(1000 * engineer), *(int(1000 * mean) for mean in schedules)])
    value = engineer - max(schedules)
    names = [f"schedule {number}" for number in range(len(schedules))]
    found = [gain(simulated(rng, engineer, schedules, seeds), "engineer", names) for _ in range(STUDIES)]
    assert np.mean([one.low <= value for one in found]) >= 0.94
    if value <= 0:
        assert np.mean([one.found == "some" for one in found]) <= 0.06


def test_a_clear_headroom_is_found():
    rng = np.random.default_rng(1)
    found = [gain(simulated(rng, 0.60, [0.5, 0.52]), "engineer", ["schedule 0", "schedule 1"]) for _ in range(200)]
    assert np.mean([one.found == "some" for one in found]) > 0.95
    assert np.mean([one.mean for one in found]) == pytest.approx(0.08, abs=0.01)


def test_by_hand():
    success = {"engineer": [0.6, 0.6, 0.7], "even": [0.5, 0.5, 0.5], "late": [0.6, 0.6, 0.6]}
    one = gain(success, "engineer", ["even", "late"])
    assert (one.above, one.seeds) == ("late", 3)
    assert one.mean == pytest.approx(1 / 30)
    assert one.low == pytest.approx(1 / 30 - students_t.ppf(0.95, 2) * np.std([0, 0, 0.1], ddof=1) / 3**0.5)


def test_what_is_found_needs_three_seeds_and_a_schedule_that_warms_up():
    success = {"engineer": [0.8, 0.81, 0.82], "even": [0.5, 0.51, 0.5]}
    found = gain(success, "engineer", ["even"])
    assert found.found == "some"
    assert replace(found, matched=False).found == "open"
    assert gain(success, "even", ["engineer"]).found == "none found"
    for few in (1, 2):
        assert gain({arm: column[:few] for arm, column in success.items()}, "engineer", ["even"]).found == "open"


def test_no_open_loop_schedule_is_an_error():
    with pytest.raises(ValueError, match="open-loop"):
        gain({"engineer": [0.5, 0.5]}, "engineer", [])


def test_lines_say_what_the_figures_allow():
    assert "reading can pay" in in_words(Gain("rules", "even", 0.10, 0.05, 10))
    assert "says nothing about reading" in in_words(Gain("rules", "even", 0.01, -0.02, 10))
    assert "may be a warm-up" in in_words(Gain("rules", "even", 0.10, 0.05, 10, matched=False))
    assert "too little" in in_words(Gain("rules", "even", 0.10, 0.05, 2))


@pytest.mark.parametrize("probability", [0.05, 0.55, 0.95, 0.975, 0.995])
def test_quantiles_are_scipys(probability):
    for freedom in (*range(1, 60), 120, 999):
        assert t_quantile(probability, freedom) == pytest.approx(students_t.ppf(probability, freedom), rel=1e-9)


def test_no_bound_of_a_single_value():
    assert lower_bound([0.5]) is None


@pytest.mark.parametrize(("low", "said"), [(-0.126, "-12.6"), (-1.419, "-100.0"), (0.02, "+2.0")])
def test_a_bound_is_not_said_to_be_below_what_is_possible(low, said):
    found = Gain("ours", "theirs", -0.1, low, seeds=2)
    assert f"ends 10.0 points below `theirs`, one-sided 95 % bound {said} (which allows" in in_words(found)
