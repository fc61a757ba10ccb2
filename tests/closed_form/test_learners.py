"""What a stage does to learners, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.closed_form.families import FAMILIES, draw
from benchmarks.closed_form.learners import KINDS, Learners, mastery, step, success, validate, value


def two(**given_):
    """One run of two slices that learn alike, apart from what is given."""
    row, square = np.zeros((1, 2)), np.zeros((1, 2, 2))
    told = {
        "weight": row + 0.5, "start": row, "rate": row + 1.0, "plateau": row, "ceiling": row + 1.0, "forgetting": row,
        "needs": square, "transfer": square, "cause": np.full((1, 2, len(KINDS)), 1 / len(KINDS)),
        "stages": np.array([4]), "cases": np.array([100]),
    }  # fmt: skip
    return Learners(**told | {name: np.asarray(value, float) for name, value in given_.items()})


EVEN = np.array([[1.0, 1.0]])
FIRST = np.array([[1.0, 0.0]])


def test_an_even_stage_is_a_dose_of_one_and_success_is_then_63_percent_of_its_ceiling():
    one = two(ceiling=[[1.0, 0.3]])
    practice = step(one, one.start, EVEN)
    assert practice.tolist() == [[1.0, 1.0]]
    assert success(one, practice) == pytest.approx(np.array([[1, 0.3]]) * (1 - np.exp(-1)))
    assert value(one, practice) == pytest.approx(0.65 * (1 - np.exp(-1)))


def test_only_proportions_of_shares_count():
    one = two()
    assert step(one, one.start, 0.01 * FIRST).tolist() == step(one, one.start, FIRST).tolist() == [[2.0, 0.0]]


def test_nothing_succeeds_before_the_plateau_is_behind():
    one = two(plateau=[[1.5, 0.5]])
    practice = step(one, one.start, EVEN)
    assert success(one, practice)[0] == pytest.approx([0.0, 1 - np.exp(-0.25)])


def test_what_gets_no_data_is_forgotten_and_what_gets_some_is_forgotten_less():
    one = two(start=[[2.0, 2.0]], forgetting=[[0.5, 0.5]], rate=[[0.0, 0.0]])
    assert step(one, one.start, FIRST)[0] == pytest.approx([2.0, 2 * np.exp(-0.5)])
    assert step(one, one.start, np.array([[3.0, 1.0]]))[0] == pytest.approx([2.0, 2 * np.exp(-0.25)])


def test_what_needs_another_skill_is_learnt_as_far_as_that_one_is_mastered():
    one = two(needs=[[[0.0, 1.0], [0.0, 0.0]]])
    once = step(one, one.start, EVEN)
    assert once[0].tolist() == [1.0, 0.0]
    assert step(one, once, EVEN)[0] == pytest.approx([2.0, mastery(one, once)[0, 0]])


def test_data_for_one_skill_helps_or_harms_another_but_not_below_nothing():
    helped, harmed = (two(transfer=[[[0.0, by], [0.0, 0.0]]]) for by in (0.5, -0.5))
    assert step(helped, helped.start, EVEN)[0].tolist() == [1.0, 1.5]
    assert step(harmed, harmed.start, EVEN)[0].tolist() == [1.0, 0.5]
    assert step(harmed, harmed.start, FIRST)[0].tolist() == [2.0, 0.0]


def test_a_focus_counts_as_much_as_it_meets_the_causes_of_failure():
    one = two(cause=[[[0.8, 0.1, 0.1], [1 / 3, 1 / 3, 1 / 3]]])
    focus = np.broadcast_to([1.0, 0.0, 0.0], (1, 2, 3))
    assert step(one, one.start, EVEN, focus)[0] == pytest.approx([2.4, 1.0])
    assert step(one, one.start, EVEN, one.unfocused())[0] == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_success_is_a_probability_and_absent_slices_stay_out(family, seed):
    learners, rng = draw(family, 5, seed), np.random.default_rng(seed)
    practice = learners.start
    for _ in range(3):
        practice = step(learners, practice, rng.random(practice.shape), rng.dirichlet([1, 1, 1], practice.shape))
        found = success(learners, practice)
        assert np.isfinite(practice).all()
        assert ((found >= 0) & (found <= learners.ceiling)).all()
    counts = validate(learners, practice, rng)
    assert (counts.succeeded + counts.failed.sum(-1) == learners.cases[:, None]).all()
    fewer = np.where(learners.present, rng.random(practice.shape), 0.0)
    more = np.where(learners.present, fewer, 7.0)
    assert (step(learners, practice, fewer) == step(learners, practice, more)).all()


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_on_the_null_all_shares_are_equally_good(seed):
    learners, rng = draw("null", 20, seed), np.random.default_rng(seed)
    even = other = learners.start
    for _ in range(6):
        even = step(learners, even, learners.even())
        other = step(learners, other, rng.dirichlet(np.full(other.shape[1], 0.1), len(learners)) + 1e-9)
    assert value(learners, other) == pytest.approx(value(learners, even), abs=1e-9)
