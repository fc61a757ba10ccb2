"""The exam's tasks as an ordinary world of texts: ``envtuning run exam-codes`` is the same training as a sitting."""

from __future__ import annotations

from functools import partial
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any

import numpy as np

from engineers.from_file import PLAIN, reads
from envtuning.errors import SpecError
from envtuning.exam.families import named
from envtuning.exam.sitting import ENVIRONMENT, SCORE
from envtuning.exam.tasks import Ints, LetterTasks, Rows
from envtuning.worlds.gym_cases import digest
from envtuning.worlds.text_scores import Asked, signs_right
from envtuning.worlds.text_world import Task, TaskKnobs, TextWorld

LETTERS = ascii_lowercase + digits + ascii_uppercase


@reads({"family": PLAIN, "root": PLAIN})
class ExamWorld(TextWorld):
    """The tasks of one root of a family: a question is ``task-3: kfaz``, and its answer is letters, too."""

    def __init__(self, family: str = "codes-slow", root: int = 0) -> None:
        self.family, self.root = named(family), root
        if self.family.content == "reasoning":
            raise SpecError("family='reasoning': its questions are in the world 'reasoning-gym'")
        self.letters = LetterTasks(self.family, root)
        names = enumerate(self.letters.names)
        tasks = {name: Task(TaskKnobs, partial(self._ask, place), signs_right) for place, name in names}
        super().__init__("exam", tasks, ENVIRONMENT.format(tasks=self.family.tasks), score_in_words=SCORE)

    def _ask(self, task: int, rng: np.random.Generator, knobs: TaskKnobs) -> Asked:
        [asked] = self.in_words(self.letters.make(np.array([task]), rng))
        return asked

    def in_words(self, rows: Rows) -> list[Asked]:
        names, shift = self.letters.names, self.letters.letters + 2
        asked = list[Asked]()
        for row, answer in zip(rows.tokens, rows.answer, strict=True):
            question = f"{names[row[0] - shift]}: {said(row[1 : 1 + answer.sum()])}"
            asked.append(Asked(question, said(row[-len(answer) :][answer])))
        return asked

    @staticmethod
    def digest_of(asked: Asked) -> str:
        """A question's fingerprint among held-out cases."""
        return digest(asked.question.encode())

    def rows_of(self, questions: list[str]) -> Ints:
        """The tokens of questions in words, without answers. Raises ``ValueError`` for any other text."""
        made = np.full((len(questions), 2 * self.letters.question + 2), self.letters.letters + 1)
        made[:, self.letters.question + 1] = self.letters.letters
        for row, question in zip(made, questions, strict=True):
            name, _, asked = question.partition(": ")
            row[0] = self.letters.letters + 2 + self.letters.names.index(name)
            row[1 : 1 + len(asked)] = [LETTERS.index(letter) for letter in asked]
        return made

    def blind_scores(self, config: Any) -> dict[str, float]:
        return {name: self.letters.blind_told[name] for name in self.slices(config)}


def said(tokens: Ints) -> str:
    return "".join(LETTERS[token] for token in tokens)
