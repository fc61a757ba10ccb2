"""Tasks that nobody made for this exam: every data set of reasoning-gym whose questions and answers are short.

The rule is the whole choice: at its default level, no question has more than 120 characters and no answer more than 20, over
``LOOKED_AT`` questions. Which of them a small transformer can learn, nobody says. It reads and writes single characters; a piece that
every question of a data set has ("Calculate ") is one token.
"""

from __future__ import annotations

import re
from functools import cache
from string import printable
from typing import NamedTuple

import numpy as np

from envtuning import atomic
from envtuning.errors import SpecError
from envtuning.exam.families import HOPELESS, LACKING, MASTERED, Family
from envtuning.exam.kept import kept_in
from envtuning.exam.tasks import Ints, Purpose, Rows, Tasks, names_of
from envtuning.worlds.reasoning_gym import QUESTIONS, dataset_at

LONGEST_QUESTION, LONGEST_ANSWER = 120, 20  # characters
LOOKED_AT = 200
SHORT = (  # of ``USED`` in envtuning/worlds/reasoning_gym.py, by this rule; a test repeats it
    "basic_arithmetic", "chain_sum", "count_bits", "count_primes", "gcd", "lcm", "number_sequence", "products",
    "simple_equations", "spell_backward",
)  # fmt: skip
# At least 10 % right after 900 updates on all ten, from scratch:
LEARNABLE = ("count_bits", "gcd", "number_sequence", "spell_backward")
BANK = 1_500  # questions of a data set; some take a tenth of a second to make
OF_TEST = 300  # the last of them, for tests
SIGNS = {sign: place for place, sign in enumerate(printable[:95])}  # letters, digits, punctuation and the space
END, EQUALS, PAD, FIRST_PIECE = 95, 96, 97, 98


class Bank(NamedTuple):
    """Questions and answers of all data sets as tokens: data set, question, token."""

    questions: Ints  # padded in front, so that they end before "="
    answers: Ints
    pieces: int  # tokens beyond single characters


class ReasoningTasks(Tasks):
    """The data sets in an order of the root's own, so that a task's number does not tell which it is; some are mastered."""

    symbols = END + 1

    def __init__(self, family: Family, seed: int) -> None:
        if family.tasks != len(SHORT):
            raise SpecError(f"{family.name} has {family.tasks} tasks, and {len(SHORT)} data sets are short enough")
        rng, self.bank = np.random.default_rng([seed, 7]), bank()
        self.names = names_of(family.tasks)
        known = rng.permutation(np.repeat((True, False), (family.mastered, family.lacking)))
        self.order = rng.permutation(family.tasks)
        self.pretrained = np.flatnonzero(known)
        can = np.isin(np.array(SHORT)[self.order], LEARNABLE)
        self.kind = np.where(can, np.where(known, MASTERED, LACKING), HOPELESS)  # for the oracle
        self.question, self.answer = self.bank.questions.shape[-1], self.bank.answers.shape[-1]
        self.words = FIRST_PIECE + self.bank.pieces + family.tasks

    def make(self, which: Ints, rng: np.random.Generator, purpose: Purpose = "training") -> Rows:
        first, last = (BANK - OF_TEST, BANK) if purpose == "test" else (0, BANK - OF_TEST)
        at = (self.order[which], rng.integers(first, last, len(which)))
        said = self.bank.answers[at]
        tags, equals = self.words - len(self.names) + which[:, None], np.full((len(which), 1), EQUALS)
        return Rows(np.hstack([tags, self.bank.questions[at], equals, said]), said != PAD)


@cache
def bank() -> Bank:
    """Made once, which takes minutes, and kept on disk."""
    path = kept_in() / f"reasoning-{BANK}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        made = tokens_of([asked(name) for name in SHORT])
        with atomic.new_file(path) as draft, open(draft, "wb") as file:
            np.savez(file, questions=made.questions, answers=made.answers, pieces=made.pieces)
    with np.load(path) as kept:
        return Bank(kept["questions"], kept["answers"], int(kept["pieces"]))


def asked(name: str, count: int = BANK) -> list[tuple[str, str]]:
    """Questions of a data set at its default level, with their answers."""
    found, rng = dataset_at(name, {}), np.random.default_rng([SHORT.index(name), 17])
    entries = (found[int(index)] for index in rng.choice(QUESTIONS, count, replace=False))
    return [(str(entry["question"]), str(entry["answer"])) for entry in entries]


def tokens_of(sets: list[list[tuple[str, str]]]) -> Bank:
    """All data sets in one alphabet."""
    pieces: dict[str, int] = {}
    for questions in sets:
        for piece in sorted(set.intersection(*(set(pieces_of(question)) for question, _ in questions))):
            pieces.setdefault(piece, FIRST_PIECE + len(pieces))

    def tokens(question: str) -> list[int]:
        known = ([pieces[piece]] if piece in pieces else signs(piece) for piece in pieces_of(question))
        return [token for part in known for token in part]

    asked_of = [[tokens(question) for question, _ in pairs] for pairs in sets]
    said_of = [[[*signs(answer), END] for _, answer in pairs] for pairs in sets]
    longest, last = (max(len(row) for of in part for row in of) for part in (asked_of, said_of))
    return Bank(
        np.array([[[PAD] * (longest - len(row)) + row for row in of] for of in asked_of]),
        np.array([[row + [PAD] * (last - len(row)) for row in of] for of in said_of]),
        len(pieces),
    )


def pieces_of(question: str) -> list[str]:
    """Its words, each with the space after it."""
    return re.findall(r"\S+\s?|\s", question)


def signs(text: str) -> list[int]:
    return [SIGNS.get(sign, SIGNS["?"]) for sign in text]
