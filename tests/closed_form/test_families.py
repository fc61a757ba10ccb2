"""Draws of learners: repeatable, within their ranges, in an order that says nothing."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.closed_form.families import DEVELOPMENT, FAMILIES, HELD_OUT, NULL, Sizes, draw
from benchmarks.closed_form.learners import step, success, value


def test_every_family_is_for_tuning_for_claims_or_the_null():
    assert sorted([*DEVELOPMENT, *HELD_OUT, NULL]) == sorted(FAMILIES)


@pytest.mark.parametrize("family", FAMILIES)
def test_equal_arguments_give_equal_runs_and_sizes_are_as_asked(family):
    one, same, other = draw(family, 50, 3), draw(family, 50, 3), draw(family, 50, 4)
    assert (one.rate == same.rate).all()
    assert (one.transfer == same.transfer).all()
    assert not np.array_equal(one.rate, other.rate)
    count = one.present.sum(1)
    assert set(count.tolist()) <= set(range(4, 33))
    assert len(set(count.tolist())) > 10
    assert set(one.stages.tolist()) == set(range(3, 13))
    assert set(one.cases.tolist()) <= set(range(20, 201))
    assert one.weight.sum(1) == pytest.approx(1)
    assert one.cause.sum(-1) == pytest.approx(1)
    assert (one.present == (np.arange(32) < count[:, None])).all()
    small = draw(family, 20, 3, sizes=Sizes((4, 4), (5, 5), (100, 100)))
    assert small.weight.shape == (20, 4)
    assert set(small.stages) == {5}
    assert set(small.cases) == {100}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_order_says_nothing(family):
    """The first slice of a run is as often mastered, slow or needed as the last."""
    learners = draw(family, 4000, 0, sizes=Sizes((6, 6), (6, 6)))
    for trait in (
        success(learners, learners.start),
        learners.rate,
        learners.needs.sum(1),
        learners.needs.sum(2),
        learners.weight,
    ):
        spread = trait.std() / 4000**0.5
        assert abs(trait[:, 0].mean() - trait[:, -1].mean()) <= 6 * spread


def test_every_skill_needs_at_most_one_other_and_none_itself_in_the_end():
    needs = draw("prerequisites", 200, 0).needs
    assert set(np.unique(needs)) == {0.0, 1.0}
    assert needs.sum(1).max() == 1
    longest = np.linalg.matrix_power(needs, needs.shape[1])
    assert not longest.any()


def test_at_first_causes_are_all_that_tells_slices_apart():
    learners = draw("causes", 100, 0)
    for trait in (success(learners, learners.start), learners.rate, learners.ceiling):
        present = np.where(learners.present, trait, np.nan)
        assert np.nanmax(present, 1) == pytest.approx(np.nanmin(present, 1))
    assert learners.cause.max(-1)[learners.present] == pytest.approx(0.6)


def test_ceilings_are_of_three_kinds_and_decoys_are_quick():
    learners = draw("ceilings", 500, 0)
    assert set(np.unique(learners.ceiling)) == {0.0, 0.3, 1.0}
    by_stages = learners.rate * learners.stages[:, None]
    decoys = learners.present & (learners.ceiling == 0.3)
    others = learners.present & (learners.ceiling != 0.3)
    assert by_stages[decoys].mean() > 3 * by_stages[others].mean()


@pytest.mark.parametrize("family", FAMILIES)
def test_even_draws_teach_something_and_leave_something(family):
    learners = draw(family, 300, 1, sizes=Sizes(stages=(6, 6)))
    practice = learners.start
    for _ in range(6):
        practice = step(learners, practice, learners.even())
    first, last = value(learners, learners.start).mean(), value(learners, practice).mean()
    assert first + 0.02 < last < 0.97
