"""The study's statistics against textbook values, brute force and simulated coverage."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from envtuning.studies.intervals import t_mean, t_mean_over_cases
from envtuning.studies.statistics import (
    above_the_best,
    headroom,
    improvement,
    interquartile_mean,
    interval,
    mean,
    mean_difference,
    over_seeds_and_cases,
    worst_tenth,
)

RNG = np.random.default_rng(0)


def test_the_interquartile_mean_leaves_the_odd_runs_out():
    assert interquartile_mean(np.array([0.0, 0.4, 0.5, 0.6, 0.5, 0.5, 0.4, 9.0])) == pytest.approx(
        np.mean([0.4, 0.5, 0.5, 0.5])
    )
    assert interquartile_mean(np.array([1.0, 2.0, 3.0])) == 2.0


@pytest.mark.parametrize("estimator", [mean, interquartile_mean])
def test_an_estimator_takes_the_runs_of_each_row(estimator):
    """Resamples lie in rows."""
    assert estimator(np.array([[1.0, 2.0, 3.0], [5.0, 6.0, 7.0]])).tolist() == [2.0, 6.0]


def test_the_chance_to_beat_is_counted_over_all_pairs():
    ours, theirs = np.array([0.3, 0.5, 0.5]), np.array([0.4, 0.5, 0.2])
    pairs = [(a > b) + 0.5 * (a == b) for a, b in itertools.product(ours, theirs)]
    assert improvement(ours, theirs) == pytest.approx(np.mean(pairs))
    assert improvement(np.stack([ours, theirs]), np.stack([theirs, ours])) == pytest.approx(
        [np.mean(pairs), 1 - np.mean(pairs)]
    )


def test_headroom_is_above_the_better_of_the_trivial_answers():
    arms = {"a": np.array([0.6, 0.7]), "b": np.array([0.1, 0.2]), "u": np.array([0.3, 0.5]), "t": np.array([0.5, 0.1])}
    assert above_the_best(arms["a"], arms["u"], arms["t"]) == pytest.approx(0.65 - 0.4)
    found = headroom(arms, ["a", "b"], ["u", "t"])
    assert found is not None
    assert found.mean == pytest.approx(0.25)
    assert headroom(arms, [], ["u"]) is None


def test_pairing_takes_the_seeds_luck_out():
    luck = RNG.uniform(size=10)
    noise = RNG.normal(scale=0.01, size=10)
    found = interval(mean_difference, luck + 0.05 + noise, luck)
    assert found.mean == pytest.approx(0.05 + noise.mean())
    assert 0 < found.high - found.low < 0.03
    assert interval(mean, luck).high - interval(mean, luck).low > 0.2
    assert interval(mean, [0.1, 0.2]).low is None
    same = interval(mean_difference, luck + 0.05, luck)
    assert (same.low, same.high) == (pytest.approx(0.05), pytest.approx(0.05))


def test_the_interval_of_a_mean_covers_it_about_as_often_as_it_says():
    """Ten seeds are few: the bootstrap is a little narrow, 90 % and more is what it can do."""
    samples = RNG.normal(size=(300, 10))
    import envtuning.studies.statistics as statistics

    before, statistics.RESAMPLES = statistics.RESAMPLES, 500
    try:
        found = [interval(mean, sample) for sample in samples]
    finally:
        statistics.RESAMPLES = before
    assert np.mean([one.low <= 0 <= one.high for one in found]) > 0.87


def test_resampling_cases_too_widens_the_interval():
    """Outcomes that depend on the case alone: other seeds tell nothing new, other cases do. An interval of 90 % is 16 % narrower."""
    ours = np.tile(RNG.random(200) < 0.6, (10, 1))
    theirs = np.tile(RNG.random(200) < 0.4, (10, 1))
    found = over_seeds_and_cases(ours, theirs, resamples=20_000)
    assert found.mean == pytest.approx(ours.mean() - theirs.mean())
    width = 2 * 1.96 * np.std(ours[0].astype(float) - theirs[0]) / 200**0.5
    assert found.high - found.low == pytest.approx(width, rel=0.05)


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


def test_the_worst_tenth_is_of_the_cases_not_of_the_runs():
    outcomes = np.ones((4, 20))
    outcomes[:, 3] = 0
    outcomes[:2, 7] = 0
    assert worst_tenth(outcomes) == pytest.approx(0.25)


def test_the_worst_tenth_is_chosen_on_other_seeds_than_it_is_scored_on():
    """Where all cases are alike, the tenth that a seed happens to fail is no worse than the rest."""
    outcomes = RNG.random((6, 4000)) < 0.5
    assert worst_tenth(outcomes) == pytest.approx(0.5, abs=0.04)
    assert worst_tenth(outcomes[:1]) is None


def test_the_best_searched_arm_is_chosen_again_in_every_resample():
    """Two arms that take turns at being good: the better of them hardly varies, the one that is best in the mean does."""
    luck = np.array([0.0, 1.0] * 5)
    arms = {"a": luck + 0.01, "b": 1 - luck, "u": np.zeros(10)}
    found, of_one = headroom(arms, ["a", "b"], ["u"]), interval(above_the_best, arms["a"], arms["u"])
    assert found.mean == of_one.mean == pytest.approx(0.51)
    assert found.low > of_one.low + 0.1
