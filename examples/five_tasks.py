"""Five short tasks for a small language model, each with one knob: ``envtuning run examples/five_tasks.yaml --trust examples``."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from envtuning.worlds.text_world import Task, TaskKnobs, TextWorld

LETTERS = np.array(list("abcdefghij"))


class Length(TaskKnobs):
    length: int = Field(4, ge=2, le=8, description="Letters of the question.")


class Digits(TaskKnobs):
    digits: int = Field(4, ge=3, le=6, description="Digits of the number, at most.")


def letters(rng: np.random.Generator, knobs: Length) -> str:
    return "".join(LETTERS[rng.integers(len(LETTERS), size=knobs.length)])


def copy(rng: np.random.Generator, knobs: Length) -> tuple[str, str]:
    word = letters(rng, knobs)
    return f"copy {word}", word


def reverse(rng: np.random.Generator, knobs: Length) -> tuple[str, str]:
    word = letters(rng, knobs)
    return f"reverse {word}", word[::-1]


def sort(rng: np.random.Generator, knobs: Length) -> tuple[str, str]:
    word = letters(rng, knobs)
    return f"sort {word}", "".join(sorted(word))


def shift(rng: np.random.Generator, knobs: Length) -> tuple[str, str]:
    """Each letter becomes the next one."""
    word = letters(rng, knobs)
    return f"shift {word}", "".join(chr(ord(letter) + 1) for letter in word)


def double(rng: np.random.Generator, knobs: Digits) -> tuple[str, str]:
    number = int(rng.integers(10**knobs.digits))
    return f"double {number}", str(2 * number)


world = TextWorld(
    "five-tasks",
    {
        "copy": Task(Length, copy),
        "reverse": Task(Length, reverse),
        "sort": Task(Length, sort),
        "shift": Task(Length, shift),
        "double": Task(Digits, double),
    },
    "Five short tasks on letters and numbers: copy a word, reverse it, sort its letters, replace each letter by the next one of the "
    "alphabet, double a number. The reply is the answer and nothing else.",
)
