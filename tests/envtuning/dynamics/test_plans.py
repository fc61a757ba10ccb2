"""What can be reached: exact where ways can be counted, never above it where a reader has to find out."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from envtuning.dynamics.families import FAMILIES, Sizes, draw
from envtuning.dynamics.learners import step, success, validate, value
from envtuning.dynamics.plans import Belief, attainable, best_on_menu, best_plan, focus_on_causes, informed

FEW = Sizes((4, 4), (4, 4), (100, 100))


def even_end(one):
    practice = one.start
    for _ in range(int(one.stages[0])):
        practice = step(one, practice, one.even())
    return float(value(one, practice)[0])


@pytest.mark.parametrize("family", ["rates", "transfer", "prerequisites+forgetting"])
def test_the_best_way_through_a_menu_is_that_of_all_ways_one_by_one(family):
    one = draw(family, 1, 0, sizes=FEW).alone(0)
    menu = np.vstack([one.even(), np.eye(4)])
    reached = []
    for way in product(menu, repeat=3):
        practice = step(one, one.start, one.even())
        for shares in way:
            practice = step(one, practice, shares[None])
        reached.append(value(one, practice)[0])
    assert best_on_menu(one, menu) == pytest.approx(max(reached), abs=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_best_found_is_at_least_the_best_of_a_menu_and_what_a_reader_reaches(family):
    learners = draw(family, 3, 5, sizes=FEW)
    for run in range(3):
        one = learners.alone(run)
        most = informed(one, run)
        assert most >= even_end(one) - 1e-9
        assert most >= best_on_menu(one, np.vstack([one.even(), np.eye(4)])) - 0.005
        assert attainable(family, one, run) <= most + 0.005


def test_on_the_null_nobody_gains():
    learners = draw("null", 4, 0, sizes=Sizes((4, 32), (3, 5)))
    for run in range(4):
        one = learners.alone(run)
        assert informed(one, 0, rounds=20) == pytest.approx(even_end(one), abs=1e-9)
        assert attainable("null", one, 0, rounds=3) == pytest.approx(even_end(one), abs=1e-9)


@pytest.mark.parametrize("family", ["plateaus", "ceilings"])
def test_reading_finds_most_of_what_knowing_does(family):
    """Over eight runs with many cases, at least half of the way from even draws to full information."""
    learners = draw(family, 8, 3, sizes=Sizes((8, 8), (8, 8), (200, 200)))
    ones = [learners.alone(run) for run in range(8)]
    even, read, known = (
        np.mean([reach(one) for one in ones])
        for reach in (even_end, lambda one: attainable(family, one, 1), lambda one: informed(one, 1))
    )
    assert known > even + 0.05
    assert read > even + 0.5 * (known - even)


def test_what_is_believed_explains_what_was_seen():
    one = draw("rates", 1, 2, sizes=Sizes((6, 6), (8, 8), (200, 200))).alone(0)
    rng = np.random.default_rng(0)
    belief, practice = Belief("rates", one, rng, False), one.start
    for _ in range(4):
        practice = step(one, practice, one.even(), one.unfocused())
        belief.seen.append((one.even(), one.unfocused(), validate(one, practice, rng)))
    likely, theirs = belief.scenarios()
    assert np.abs(success(likely, theirs).mean(0) - success(one, practice)[0]).max() < 0.1
    assert np.abs(success(belief.prior, belief.prior.start).mean(0) - success(one, practice)[0]).max() > 0.2


def test_a_slice_keeps_what_it_needs_and_what_helps_it_when_learners_are_put_together():
    one = draw("prerequisites", 1, 0, sizes=FEW).alone(0)
    belief = Belief("prerequisites", one, np.random.default_rng(0), False)
    belief.seen.append((one.even(), one.unfocused(), validate(one, one.start, np.random.default_rng(1))))
    likely, _ = belief.scenarios()
    prior = {tuple(column) for needs in belief.prior.needs for column in needs.T}
    assert {tuple(column) for needs in likely.needs for column in needs.T} <= prior
    assert likely.needs.sum(1).max() == 1


def test_a_plan_shares_out_every_stage_and_never_gets_worse_with_more_search():
    one = draw("transfer", 1, 1).alone(0)
    focus, found = focus_on_causes(one.cause), []
    for rounds in (0, 30, 200):
        plan = best_plan(one, one.start, focus, 5, rounds, np.random.default_rng(0))
        assert plan.shape == (5, one.weight.shape[1])
        assert plan.min() >= 0
        assert plan.sum(1) == pytest.approx(1)
        practice = one.start
        for shares in plan:
            practice = step(one, practice, shares[None], focus)
        found.append(value(one, practice)[0])
    assert found == sorted(found)


def test_a_focus_is_on_what_stands_out():
    cause = np.array([[[0.6, 0.2, 0.2], [0.34, 0.33, 0.33], [0.1, 0.2, 0.7]]])
    assert focus_on_causes(cause)[0] == pytest.approx(np.array([[1, 0, 0], [1 / 3] * 3, [0, 0, 1]]))
