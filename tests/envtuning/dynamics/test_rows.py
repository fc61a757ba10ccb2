"""The open-loop arms of the rows are what they say, and read nothing."""

from __future__ import annotations

import numpy as np
import pytest

import engineers
from envtuning.dynamics.families import Sizes, draw
from envtuning.dynamics.reports import play
from tests.lazily import Lazy

rows = Lazy("benchmarks.dynamics")
LEARNERS = draw("transfer", 6, 0, sizes=Sizes((4, 9), (3, 6), (20, 40)))


@pytest.mark.parametrize("parts", [2, 3, 4])
def test_blocks_come_to_every_slice_and_replay_the_others(parts):
    nine = draw("rates", 3, 0, sizes=Sizes((9, 9), (9, 9)))
    drawn = np.stack([rows.blocks((parts, 0.1), nine, stage)[0] for stage in range(1, 9)])
    assert drawn.sum(-1) == pytest.approx(1)
    assert (drawn > 0.1).any(0).all()
    assert (drawn < 0.1).any(0).all()
    assert drawn.min() == pytest.approx(0.1 / 9)


def test_what_weighs_least_is_dropped_for_good():
    for stage in range(1, 6):
        kept = rows.drop((0.5, 0.5), LEARNERS, stage)[0] > 0
        for run, count in enumerate(LEARNERS.present.sum(1)):
            if stage <= 0.5 * LEARNERS.stages[run]:
                assert kept[run].sum() == count
                continue
            assert kept[run].sum() == np.ceil(count / 2)
            dropped = LEARNERS.present[run] & ~kept[run]
            assert LEARNERS.weight[run][kept[run]].min() > LEARNERS.weight[run][dropped].max()


def test_fixed_shares_follow_the_weights_and_nobody_else_gets_any():
    found = rows.shares(2.0, LEARNERS, 1)[0]
    assert found == pytest.approx(LEARNERS.weight**2)


@pytest.mark.parametrize("name", ["uniform", "fixed"])
def test_even_draws_end_where_uniform_and_fixed_do(name):
    ends = [run.success for run in play(engineers.make(name), LEARNERS, 0)]
    assert rows.unread("even", 0.0, LEARNERS) == pytest.approx(np.array(ends), abs=1e-9)


def test_without_causes_a_focus_changes_nothing():
    assert rows.unread("focus", (0, 1), LEARNERS) == pytest.approx(rows.unread("even", 0.0, LEARNERS))
