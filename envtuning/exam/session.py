"""A training of the exam: stages on shares of the tasks, what they showed, and the test at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from envtuning.exam.families import DECISIONS, Family
from envtuning.exam.roots import starting, tasks_of
from envtuning.exam.tasks import Ints
from envtuning.exam.training import Floats, optimiser, tested, train

TEST_CASES = 200  # of each task


class Start(NamedTuple):
    """Where a run starts, and the seed of its training."""

    root: int
    training: int = 0


class Shown(NamedTuple):
    """What a stage showed, in the order of training: run, answer."""

    task: Ints
    success: np.ndarray  # bool
    score: Floats
    further: np.ndarray  # bool: of several replies to a question, all but the first

    def cut(self, runs: slice = slice(None), answers: slice = slice(None)) -> Shown:
        at = (runs, answers)
        return Shown(self.task[at], self.success[at], self.score[at], self.further[at])


class Session:
    """One training, or several of a family side by side."""

    def __init__(self, family: Family, starts: Sequence[Start], decisions: int = DECISIONS) -> None:
        self.family, self.starts, self.updates = family, list(starts), family.stage(decisions)
        self.stages, self.stage = decisions, 0
        self.tasks = [tasks_of(family, start.root) for start in starts]
        self.policies = starting(family, self.tasks, [start.root for start in starts])
        self.draws = [np.random.default_rng([start.root, start.training, 3]) for start in starts]
        self.opt = optimiser(self.policies, family)

    def train(self, shares: Floats, updates: int | None = None) -> Shown:
        """One stage, of ``updates`` or an equal part of the budget. ``shares`` are weights of the tasks, by run, on any scale."""
        family, warm = self.family, self.family.warm
        if not family.carry:
            self.opt = optimiser(self.policies, family)
        elif self.stage:
            warm = 0
        self.stage += 1
        size, parts = (updates or self.updates, family.batch), shares / shares.sum(1, keepdims=True)
        which = np.stack([rng.choice(family.tasks, size, p=part) for rng, part in zip(self.draws, parts, strict=True)])
        replies = family.replies if family.learning == "reward" else None
        seen = train(
            self.policies, self.tasks, which, self.draws, self.opt,
            lambda update: family.rate * min(1.0, (update + 1) / (warm + 1)), replies=replies,
        )  # fmt: skip
        return shown(which, seen.success, seen.score, replies or 1)

    def test(self, cases: int = TEST_CASES) -> Floats:
        """Success on fresh questions: run, task. The questions depend on the root, the training's seed and the stage alone."""
        rngs = [np.random.default_rng([start.root, start.training, 4, self.stage]) for start in self.starts]
        return tested(self.policies, self.tasks, cases, rngs)


def shown(which: Ints, success: np.ndarray, score: Floats, replies: int) -> Shown:
    """Of questions that have so many replies each, which stand side by side. ``which``: the questions' tasks, of each run."""
    task = np.repeat(which, replies, -1).reshape(len(which), -1)
    further = np.broadcast_to(np.arange(task.shape[1]) % replies > 0, task.shape)
    return Shown(task, success.reshape(task.shape), score.reshape(task.shape), further)
