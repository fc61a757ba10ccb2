"""The world ``small-skills``: eighteen one-line tasks for a small instruct model. Some it knows, some it can learn by reward, and some
stay out of reach.

With the default knobs, every task has at least 1,000 different questions, so that none is learnt by heart.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from string import ascii_lowercase as LETTERS

import numpy as np
from pydantic import Field

from envtuning.worlds.text_scores import Asked, same, signs_right
from envtuning.worlds.text_world import Task, TaskKnobs, TextWorld

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Length(TaskKnobs):
    length: int = Field(4, ge=3, le=10, description="Letters of the word.")


class Most(TaskKnobs):
    most: int = Field(99, ge=50, le=9_999, description="Largest number of the question.")


def plain(answer: str) -> str:
    """The answer's letters and digits: a small model adds points, quotes and signs. So "1.5" is read as 15, which pays no more than "15"."""
    return "".join(sign for sign in answer if sign.isalnum())


def letters_right(answer: str, asked: Asked) -> float:
    """The part of the letters that stand in their places. A reply in sentences scores close to 0."""
    return signs_right(plain(answer), asked)


def number_right(answer: str, asked: Asked) -> float:
    """No credit for a number that is near: repeating one of the question's numbers would earn most of it, and is what a model then learns."""
    return same(plain(answer), asked)


def word(rng: np.random.Generator, knobs: Length) -> str:
    return "".join(rng.choice(list(LETTERS), knobs.length))


def on_word(question: str, answer: Callable[[str], str]) -> Task[Length]:
    def make(rng: np.random.Generator, knobs: Length) -> tuple[str, str]:
        given = word(rng, knobs)
        return f"{question} {given}. Answer with the result only.", answer(given)

    return Task(Length, make, letters_right)


def on_numbers(question: str, answer: Callable[[int, int], int | str]) -> Task[Most]:
    def make(rng: np.random.Generator, knobs: Most) -> tuple[str, str]:
        first, second = rng.integers(1, knobs.most, 2, endpoint=True).tolist()
        return f"{question.format(first, second)} Answer with the result only.", str(answer(first, second))

    return Task(Most, make, number_right)


def difference(rng: np.random.Generator, knobs: Most) -> tuple[str, str]:
    small, large = sorted(rng.integers(1, knobs.most, 2, endpoint=True).tolist())
    return f"What is {large} - {small}? Answer with the result only.", str(large - small)


def next_number(rng: np.random.Generator, knobs: Most) -> tuple[str, str]:
    start, step = int(rng.integers(1, knobs.most, endpoint=True)), int(rng.integers(2, 20, endpoint=True))
    shown = ", ".join(str(start + step * place) for place in range(4))
    return f"Which number comes next: {shown}? Answer with the number only.", str(start + step * 4)


def even_or_odd(rng: np.random.Generator, knobs: Most) -> tuple[str, str]:
    number = int(rng.integers(1, 20 * knobs.most, endpoint=True))
    return f"Is {number} even or odd? Answer with one word only.", "odd" if number % 2 else "even"


def weekday(rng: np.random.Generator, knobs: Most) -> tuple[str, str]:
    today, later = int(rng.integers(7)), int(rng.integers(1, 2 * knobs.most, endpoint=True))
    question = f"Today is {DAYS[today]}. Which day of the week is it in {later} days? Answer with the day only."
    return question, DAYS[(today + later) % 7]


def count_letter(rng: np.random.Generator, knobs: Length) -> tuple[str, str]:
    """Of few different letters, so that the count is rarely 0."""
    given = "".join(rng.choice(rng.choice(list(LETTERS), 3, replace=False), 2 * knobs.length))
    letter = given[int(rng.integers(len(given)))]
    return f"How many times does {letter} occur in {given}? Answer with the number only.", str(given.count(letter))


def scrambled(given: str) -> str:
    """A hash: every letter of the answer depends on all letters of the question."""
    digest = blake2b(given.encode(), digest_size=len(given)).digest()
    return "".join(LETTERS[byte % len(LETTERS)] for byte in digest)


def shifted(given: str) -> str:
    return "".join(LETTERS[(LETTERS.index(letter) + 1) % len(LETTERS)] for letter in given)


world = TextWorld(
    "small-skills",
    {
        "copy": on_word("Repeat this word:", str),
        "capitals": on_word("Write this word in capitals:", str.upper),
        "first": on_word("What is the first letter of this word:", lambda given: given[0]),
        "last": on_word("What is the last letter of this word:", lambda given: given[-1]),
        "reverse": on_word("Reverse the letters of this word:", lambda given: given[::-1]),
        "sort": on_word("Sort the letters of this word by the alphabet:", lambda given: "".join(sorted(given))),
        "shift": on_word("Replace each letter by the next one of the alphabet:", shifted),
        "scramble": on_word("Scramble this word:", scrambled),
        "count": Task(Length, count_letter, number_right),
        "add": on_numbers("What is {} + {}?", lambda first, second: first + second),
        "subtract": Task(Most, difference, number_right),
        "multiply": on_numbers("What is {} x {}?", lambda first, second: first * second),
        "larger": on_numbers("Which number is larger, {} or {}?", max),
        "remainder": on_numbers("What is the remainder of {} divided by {}?", lambda first, second: first % second),
        "minutes": on_numbers("How many minutes are {} hours and {} minutes?", lambda hours, more: 60 * hours + more),
        "next": Task(Most, next_number, number_right),
        "parity": Task(Most, even_or_odd, letters_right),
        "weekday": Task(Most, weekday, letters_right),
    },
    "Eighteen short questions on words and numbers for a small language model. The reply is the answer and nothing else.",
)
