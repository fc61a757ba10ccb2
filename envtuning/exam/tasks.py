"""The tasks of a root: questions and answers as tokens, and which of them are mastered, lacking or out of reach.

A row of tokens is the task's tag, the question, "=", and the answer. Questions and answers are padded to the family's longest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from envtuning.exam.families import COIN, HALF_RIGHT, HOPELESS, LACKING, MASTERED, Family

Ints = NDArray[np.int64]
Purpose = Literal["pretraining", "training", "test"]
PRIME = 97  # the letters of a hopeless answer are squares modulo this number, cut to the alphabet
ALGORITHMS = 12  # different rules; the next dozen has other constants
BLIND = 2_000  # questions that tell what a blind guess scores


def names_of(tasks: int) -> list[str]:
    """No number alone, which would declare an order from easy to hard."""
    return [f"task-{task}" for task in range(tasks)]


class Rows(NamedTuple):
    """Questions with their answers."""

    tokens: Ints  # [rows, 1 + longest question + 1 + longest answer]
    answer: NDArray[np.bool_]  # [rows, longest answer]: which of the last tokens are the answer's


class Tasks(ABC):
    """The tasks of one root."""

    names: list[str]
    kind: Ints  # by task, as in ``KINDS``
    pretrained: Ints  # the tasks on which the root is trained
    symbols: int  # different letters of answers: tokens from 0 on
    words: int  # different tokens
    question: int  # tokens of the longest
    answer: int

    @abstractmethod
    def make(self, which: Ints, rng: np.random.Generator, purpose: Purpose = "training") -> Rows:
        """A row for each task named."""

    @property
    def sizes(self) -> tuple[int, int, int, int]:  # of a policy for these tasks
        return self.words, self.symbols, self.question, self.answer

    @cached_property
    def blind(self) -> list[float]:
        """Of each task, the share of letters that the best answer which ignores the question has right."""
        asked = (self.make(np.full(BLIND, task), np.random.default_rng([task, 13])) for task in range(len(self.names)))
        return [blind_guess(rows, self.symbols) for rows in asked]

    @property
    def blind_told(self) -> dict[str, float]:
        """What engineers are told of it: of all tasks the lowest, because their own levels would tell which are hopeless."""
        return dict.fromkeys(self.names, min(self.blind))


class LetterTasks(Tasks):
    """Tasks whose answers are functions of the letters of a question."""

    def __init__(self, family: Family, seed: int) -> None:
        rng, n, letters = np.random.default_rng([seed, 7]), family.tasks, family.letters
        self.family, self.letters = family, letters
        self.names = names_of(n)
        self.symbols, self.words = letters, letters + 2 + n  # letters, "=", padding, tags
        self.lengths = np.resize(family.lengths, n)
        self.question = self.answer = max(family.lengths)  # tokens of the longest
        self.kind = rng.permutation(np.repeat(range(len(family.counts)), family.counts))
        self.codes = np.stack([rng.permutation(letters) for _ in range(n)])
        self.pairs = rng.integers(0, letters, (n, letters, letters))
        self.mixes = rng.integers(1, PRIME, (n, self.answer, self.answer + 1))
        self.rule = rng.permutation(n)
        self.sides = np.stack([rng.permutation(letters)[:2] for _ in range(n)])  # of a coin
        low, high = family.taught
        self.known = rng.random((n, letters)).argsort(1) < rng.integers(low, high + 1, (n, 1))  # letters, by reward
        kinds = (MASTERED, COIN, *([LACKING] if family.learning == "reward" else []))
        self.pretrained = np.flatnonzero(np.isin(self.kind, kinds))

    def answers(self, task: int, x: Ints, rng: np.random.Generator) -> Ints:
        kind, half = self.kind[task], x.shape[1] // 2
        if kind == COIN:
            return np.repeat(self.sides[task][rng.integers(0, 2, len(x))][:, None], x.shape[1], 1)
        if kind == HOPELESS:
            return self._mixed(task, x)
        if kind == HALF_RIGHT:
            return np.hstack([self.codes[task][x[:, :half]], self._mixed(task, x)[:, half:]])
        if self.family.content == "codes":
            return self.codes[task][x]
        if self.family.content == "pairs":
            return self.pairs[task][x, np.roll(x, -1, 1)]
        again, rule = divmod(int(self.rule[task]), ALGORITHMS)
        return algorithm(rule, 1 + 2 * again, x, self.letters)

    def _mixed(self, task: int, x: Ints) -> Ints:
        """Every letter depends on all letters of the question."""
        n = x.shape[1]
        total = x @ self.mixes[task, :n, :n] + self.mixes[task, :n, self.answer]
        return (total * total % PRIME) % self.letters

    def make(self, which: Ints, rng: np.random.Generator, purpose: Purpose = "training") -> Rows:
        """In pretraining, letters of a lacking task that its root is not to know have random labels."""
        n, room, equals = len(which), self.question, self.letters
        tokens, answer = np.full((n, 2 * room + 2), equals + 1), np.zeros((n, room), bool)
        for task in np.unique(which):
            rows, at = np.flatnonzero(which == task), np.arange(self.lengths[task])
            x = rng.integers(0, self.letters, (len(rows), len(at)))
            said = self.answers(int(task), x, rng)
            if purpose == "pretraining" and self.kind[task] == LACKING:
                said = np.where(self.known[task][x], said, rng.integers(0, self.letters, x.shape))
            tokens[rows, 0], tokens[rows, room + 1] = equals + 2 + task, equals
            tokens[np.ix_(rows, 1 + at)] = x
            tokens[np.ix_(rows, room + 2 + at)] = said
            answer[np.ix_(rows, at)] = True
        return Rows(tokens, answer)


def blind_guess(rows: Rows, symbols: int) -> float:
    """The share of letters right if each place of the answer has its most frequent letter."""
    said = rows.tokens[:, -rows.answer.shape[1] :]
    places = [(said[of, place], of.sum()) for place, of in enumerate(rows.answer.T)]
    best = sum(np.bincount(letters, minlength=symbols).max() for letters, count in places if count)
    return float(best / rows.answer.sum())


def algorithm(rule: int, by: int, x: Ints, k: int) -> Ints:
    """One of a dozen simple functions of a question of letters 0 to ``k`` − 1, with the constant ``by``."""
    back = x[:, ::-1]
    return (
        lambda: back, lambda: np.sort(x, 1), lambda: -np.sort(-x, 1), lambda: (x + by) % k, lambda: np.cumsum(x, 1) % k,
        lambda: np.roll(x, by, 1), lambda: k - 1 - x, lambda: np.maximum.accumulate(x, 1),
        lambda: (x + np.roll(x, -by, 1)) % k, lambda: (back + by) % k, lambda: np.minimum.accumulate(back, 1),
        lambda: (x - np.roll(x, by, 1)) % k,
    )[rule]()  # fmt: skip
