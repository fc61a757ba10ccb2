"""What an engineer is told of a stage: all of it, less, or the controls in which there is nothing to learn from reading."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from envtuning.exam.session import Shown
from envtuning.exam.tasks import Tasks
from envtuning.exam.training import Floats

Reads = Literal["scores", "success", "shuffled scores", "yoked", "mean of others"]
# The last two are controls: the run's own counts, with the rates of a run on another root, or the mean rates of five.
DONORS: dict[Reads, int] = {"yoked": 1, "mean of others": 5}
AWAY = 100_000  # a donor's root is so far from the run's own


class Columns(NamedTuple):
    """What a curriculum observes: a slice, a success and perhaps a score for each answer, and whether it is a further reply."""

    slices: Any
    successes: Any
    scores: Floats | None
    further: Any


Told = Callable[[Shown, int], Columns]  # of half a stage, and its number in the run


class Rates(NamedTuple):
    """Of every half of a stage and every task: the part of the answers that were right, and the mean score."""

    success: Floats
    score: Floats


def plainly(reads: Reads, tasks: Tasks, rng: np.random.Generator) -> Told:
    """The outcomes of a session's only run. Shuffled scores are those of a task of the same kind: they tell no more than the kind does."""

    def told(shown: Shown, half: int) -> Columns:
        task, success, score = shown.task[0], shown.success[0], shown.score[0].copy()
        if reads == "shuffled scores":
            for kind in np.unique(tasks.kind):
                rows = np.flatnonzero(tasks.kind[task] == kind)
                score[rows] = rng.permutation(score[rows])
        return Columns(np.array(tasks.names)[task], success, None if reads == "success" else score, shown.further[0])

    return told


def as_of_others(rates: Rates, tasks: Tasks, rng: np.random.Generator) -> Told:
    """As many answers to each task as the run had, drawn by others' rates. So a reader learns nothing of its own run, and cannot tell."""

    def told(shown: Shown, half: int) -> Columns:
        task = shown.task[0]
        success = rng.random(len(task)) < rates.success[half][task]
        letters = rng.binomial(tasks.answer, rates.score[half][task]) / tasks.answer
        return Columns(np.array(tasks.names)[task], success, np.where(success, 1.0, letters), shown.further[0])

    return told


def rates_of(runs: list[list[Shown]], tasks: int) -> Rates:
    """The mean rates of some runs; a task that has no answers in half a stage keeps its last rates, and begins with the mean of the others."""
    by_run = [[_rates(shown, tasks) for shown in run] for run in runs]
    for run in by_run:
        last = np.full((2, tasks), np.nanmean(run[0], axis=1, keepdims=True))
        for half, found in enumerate(run):
            run[half] = last = np.where(np.isnan(found), last, found)
    success, score = np.mean(by_run, axis=0).transpose(1, 0, 2)
    return Rates(success, score)


def _rates(shown: Shown, tasks: int) -> Floats:
    """Success and score by task; NaN for a task without answers."""
    counts = np.bincount(shown.task[0], minlength=tasks)
    sums = np.stack([np.bincount(shown.task[0], of[0], tasks) for of in (shown.success, shown.score)])
    return np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
