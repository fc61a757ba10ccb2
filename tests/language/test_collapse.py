"""The rule that sees a collapse: both signs together, against the stage's own beginning, before anything is infinite."""

from __future__ import annotations

import math
import random

import pytest

from envtuning.trainees.language.collapse import BEGIN, SILENT, WINDOW, collapsed, unrewarded
from envtuning.trainees.scripted import ITERATION, ScriptedTrainee


def test_steps_without_any_difference_between_replies_teach_nothing():
    silent = [{"equal_groups": 1.0}] * SILENT
    assert "all replies to a prompt earned the same" in unrewarded(silent)
    assert unrewarded(silent[1:]) is None  # too few to tell
    assert unrewarded([*silent, {"equal_groups": 0.99}]) is None
    assert unrewarded([{"loss": 1.0}] * 100) is None


class Collapsing(ScriptedTrainee):
    """Learns like the scripted one, and reports an entropy that vanishes while the gradient surges."""

    collapse = staticmethod(collapsed)

    def train(self, config, budget, *, seed, on_iteration=None):
        def tell(step):
            self.done = getattr(self, "done", 0) + 1
            gone = max(0, self.done - BEGIN)
            on_iteration(step | {"entropy": 0.5**gone, "grad_norm": 2.0**gone})

        return super().train(config, budget, seed=seed, on_iteration=tell)


def steps(entropies, norms):
    return [{"entropy": entropy, "grad_norm": norm} for entropy, norm in zip(entropies, norms, strict=True)]


def healthy(n, seed=0, spread=0.3):
    """Gradient norms vary by 0.15 to 0.3 of their mean in healthy training; entropy falls slowly."""
    draw = random.Random(seed)
    return steps(
        [1.0 * 0.995**step * draw.uniform(0.9, 1.1) for step in range(n)],
        [draw.gauss(1.0, spread) for _ in range(n)],
    )


def test_a_collapse_is_seen_before_the_numbers_stop_being_finite():
    collapse = [{"entropy": 0.8 * 0.6**step, "grad_norm": 1.5**step} for step in range(12)]
    history = healthy(60) + collapse
    seen = next(n for n in range(len(history)) if collapsed(history[:n]))
    assert 60 < seen < len(history)
    assert math.isfinite(history[seen - 1]["grad_norm"])
    assert "entropy fell from" in collapsed(history)


@pytest.mark.parametrize("seed", range(20))
def test_healthy_training_is_none(seed):
    history = healthy(200, seed)
    assert not any(collapsed(history[:n]) for n in range(len(history)))


def test_either_sign_alone_is_none():
    learnt = healthy(20) + steps([0.01] * 20, [0.5] * 20)  # the task is mastered: sure of itself, and little to learn
    surprised = healthy(20) + steps([1.0] * 20, [30.0] * 20)  # a new config
    assert collapsed(learnt) is None
    assert collapsed(surprised) is None


def test_too_few_steps_tell_nothing():
    assert collapsed(steps([1.0] * BEGIN + [0.0] * (WINDOW - 1), [1.0] * BEGIN + [99.0] * (WINDOW - 1))) is None
    assert collapsed([{"loss": 1.0}] * 100) is None


def test_a_collapse_is_measured_at_its_bounds():
    """Over the last five steps against the first ten: less than a fifth of the entropy, more than three times the norm."""
    begin = steps([1.0] * 9 + [11.0], [2.0] * 9 + [90.0])  # a mean of 2, a median of 2
    between = steps([5.0] * 3, [2.0] * 3)

    def now(entropies, norms):
        return collapsed(begin + between + steps(entropies, norms))

    gone, surging = [0.3, 0.3, 0.3, 0.3, 0.79], [5.0, 5.0, 6.0, 6.0, 8.01]
    assert now(gone, surging) == (
        "collapsed: in 18 optimiser steps the entropy fell from 2.000 to 0.398 while the gradient's norm rose from 2 to 6; "
        "what is learnt from here on is of little use: a shorter stage, or more KL"
    )
    assert now([0.4] * 5, surging) is None
    assert now(gone, [6.0] * 5) is None
    assert now([0.4, *gone[1:]], [8.0, *surging[1:]]) is None
    assert collapsed(begin + steps(gone, surging)) is not None
    assert collapsed(begin[1:] + steps(gone, surging)) is None
    small = steps([1.0] * 10, [0.01] * 10)
    assert collapsed(small + steps([0.0] * 5, [0.031] * 5)) is not None
    assert collapsed(small + steps([0.0] * 5, [0.029] * 5)) is None
    still = steps([1.0] * 10, [0.0] * 10)  # no gradient to surge from
    assert collapsed(still + steps([0.0] * 5, [1.0] * 5)) is None
    mixed = [one for step in begin + steps(gone, surging) for one in (step, {"entropy": 9.0}, {"grad_norm": 9.0})]
    assert collapsed(mixed) is not None
    assert (BEGIN, WINDOW, SILENT) == (10, 5, 3)


def test_the_loop_records_it_once_and_goes_on(tmp_path):
    """A scripted trainee whose training collapses half way through its stage."""
    from envtuning.loop import run as loop
    from envtuning.runs.spec import load_spec

    settings = {
        "trainee": {"kind": f"{__name__}:Collapsing"},
        "engineer.name": "fixed",
        "suites.test_per_slice": 0,
        "stages.0.budget": 2 * ITERATION * (BEGIN + WINDOW),
    }
    run = loop.start(load_spec("scripted", changes=settings).with_rounds(1), tmp_path / "run")
    [incident] = [one for one in run.state.incidents() if one.kind == "collapsed"]
    assert "the entropy fell from" in incident.message
    assert run.state.stages[0].done is not None
