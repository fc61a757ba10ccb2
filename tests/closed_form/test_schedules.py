"""The open-loop arms of the rows are what they say, and read nothing."""

from __future__ import annotations

import numpy as np
import pytest

import engineers
from benchmarks.closed_form import schedules
from benchmarks.closed_form.families import Sizes, draw
from benchmarks.closed_form.reports import play
from benchmarks.reader import focus_on_causes

LEARNERS = draw("transfer", 6, 0, sizes=Sizes((4, 9), (3, 6), (20, 40)))


@pytest.mark.parametrize("parts", [2, 3, 4])
def test_blocks_come_to_every_slice_and_replay_the_others(parts):
    nine = draw("rates", 3, 0, sizes=Sizes((9, 9), (9, 9)))
    drawn = np.stack([schedules.blocks((parts, 0.1), nine, stage)[0] for stage in range(1, 9)])
    assert drawn.sum(-1) == pytest.approx(1)
    assert (drawn > 0.1).any(0).all()
    assert (drawn < 0.1).any(0).all()
    assert drawn.min() == pytest.approx(0.1 / 9)


def test_what_weighs_least_is_dropped_for_good():
    for stage in range(1, 6):
        kept = schedules.drop((0.5, 0.5), LEARNERS, stage)[0] > 0
        for run, count in enumerate(LEARNERS.present.sum(1)):
            if stage <= 0.5 * LEARNERS.stages[run]:
                assert kept[run].sum() == count
                continue
            assert kept[run].sum() == np.ceil(count / 2)
            dropped = LEARNERS.present[run] & ~kept[run]
            assert LEARNERS.weight[run][kept[run]].min() > LEARNERS.weight[run][dropped].max()


def test_fixed_shares_follow_the_weights_and_nobody_else_gets_any():
    found = schedules.shares(2.0, LEARNERS, 1)[0]
    assert found == pytest.approx(LEARNERS.weight**2)


@pytest.mark.parametrize("name", ["uniform", "fixed"])
def test_even_draws_end_where_uniform_and_fixed_do(name):
    ends = [run.success for run in play(engineers.make(name), LEARNERS, 0)]
    assert schedules.unread("even", 0.0, LEARNERS) == pytest.approx(np.array(ends), abs=1e-9)


def test_without_causes_a_focus_changes_nothing():
    assert schedules.unread("focus", (0, 1), LEARNERS) == pytest.approx(schedules.unread("even", 0.0, LEARNERS))


def test_even_draws_and_the_three_best_go_on():
    tuning = draw("plateaus", 12, 1)
    chosen = schedules.frozen(tuning)
    ends = {
        f"{arm} {config}": schedules.unread(arm, config, tuning).mean()
        for arm, (_, configs) in schedules.OPEN.items()
        for config in configs
    }
    even, *best = chosen
    assert even == "even 0.0"
    assert [ends[name] for name in best] == sorted((end for name, end in ends.items() if name != even), reverse=True)[
        :3
    ]
    assert schedules.in_words("blocks (2, 0.1)") == "blocks 2, 0.1"


def test_a_focus_is_on_what_stands_out():
    cause = np.array([[[0.6, 0.2, 0.2], [0.34, 0.33, 0.33], [0.1, 0.2, 0.7]]])
    assert focus_on_causes(cause)[0] == pytest.approx(np.array([[1, 0, 0], [1 / 3] * 3, [0, 0, 1]]))
