"""Small worlds of text for ``benchmarks.safety``: some of their tasks are easy, some hard and some impossible.

Forms of the default engineer were compared on `three` and `six`, and an older one on `twelve`; `counts`, `lengths` and `sums` had no part in that. On `moves` an
earlier form ended below even draws, so the next one was chosen on it, too. `bits` and `days` had not been played then, and `boards` was written after it.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import TypeVar

import numpy as np

from envtuning.worlds.text_scores import Scorer, nearness, same, signs_right
from envtuning.worlds.text_world import Task, TaskKnobs, TextWorld

T = TypeVar("T")  # what a question is about
LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))
REPLY = "The reply is the answer and nothing else."


def on_word(
    name: str, answer: Callable[[str], str], length: int, letters: int, asked: int | None = None
) -> Task[TaskKnobs]:
    """A task on words of this length from the first ``letters`` of the alphabet; it has no knob but its share.

    Only so many letters of the answer are ``asked``, if that is given.
    """

    def make(rng: np.random.Generator, knobs: TaskKnobs) -> tuple[str, str]:
        word = "".join(LETTERS[rng.integers(letters, size=length)])
        return f"{name} {word}", answer(word)[:asked]

    return Task(TaskKnobs, make, signs_right)


def code(number: int, letters: int) -> Callable[[str], str]:
    """Each letter stands for another one of the same letters."""
    stands_for = dict(zip(LETTERS[:letters], np.random.default_rng(number).permutation(LETTERS[:letters]), strict=True))
    return lambda word: "".join(stands_for[letter] for letter in word)


def scrambled(word: str) -> str:
    """A hash: impossible, as every letter of the answer depends on the whole word."""
    return "".join(LETTERS[byte % 10] for byte in blake2b(word.encode(), digest_size=len(word)).digest())


first = on_word("first", lambda word: word[0], 3, 10)
largest = on_word("largest", max, 3, 10)
impossible = on_word("hash", scrambled, 3, 10)

three = TextWorld(
    "three-words", {"first": first, "largest": largest, "hash": impossible}, f"Three tasks on words. {REPLY}"
)

six = TextWorld(
    "six-words",
    {
        "first": first,
        "largest": largest,
        "kinds": on_word("kinds", lambda word: str(len(set(word))), 4, 5),
        "copy": on_word("copy", str, 3, 10),
        "sort": on_word("sort", lambda word: "".join(sorted(word)), 3, 10),
        "hash": impossible,
    },
    f"Six tasks on words. {REPLY}",
)

twelve = TextWorld(
    "twelve-codes",
    {
        **{f"easy-{sign}": on_word(sign, code(number, 6), 4, 6, 1) for number, sign in enumerate("ABCD")},
        **{f"hard-{sign}": on_word(sign, code(number, 16), 4, 16, 2) for number, sign in enumerate("EFGH")},
        **{f"hash-{sign}": on_word(sign, scrambled, 4, 6, 1) for sign in "IJKL"},
    },
    f"Twelve tasks on words: codes of their first letters, and hashes. {REPLY}",
)


def drawn(
    name: str,
    draw: Callable[[np.random.Generator], T],
    written: Callable[[T], str],
    answer: Callable[[T], object],
    score: Scorer,
) -> Task[TaskKnobs]:
    """A task on what is drawn, without a knob but its share."""

    def make(rng: np.random.Generator, knobs: TaskKnobs) -> tuple[str, str]:
        subject = draw(rng)
        return f"{name} {written(subject)}", str(answer(subject))

    return Task(TaskKnobs, make, score)


def digits_below(most: int, size: int) -> Callable[[np.random.Generator], list[int]]:
    return lambda rng: rng.integers(most, size=size).tolist()


def in_a_row(digits: list[int]) -> str:
    return "".join(map(str, digits))


def counted(name: str, answer: Callable[[str], object]) -> Task[TaskKnobs]:
    """A question about five letters, which has no partial credit."""
    return drawn(name, lambda rng: "".join(LETTERS[rng.integers(4, size=5)]), str, answer, same)


def calculated(name: str, answer: Callable[[list[int]], int]) -> Task[TaskKnobs]:
    """A question about three digits; an answer that is near has partial credit."""
    return drawn(name, digits_below(10, 3), lambda digits: " ".join(map(str, digits)), answer, nearness)


counts = TextWorld(
    "four-counts",
    {
        "a": counted("a", lambda word: word.count("a")),
        "same": counted("same", lambda word: int(word[0] == word[-1])),
        "most": counted("most", lambda word: max("abcd", key=word.count)),
        "parity": counted("parity", lambda word: sum(map(ord, word)) % 2),
    },
    f"Four questions about five letters. {REPLY}",
)

lengths = TextWorld(
    "eight-lengths",
    {
        **{f"copy-{length}": on_word(f"copy{length}", str, length, 8) for length in (3, 4, 5)},
        **{f"turn-{length}": on_word(f"turn{length}", lambda word: word[::-1], length, 8) for length in (3, 4)},
        **{
            f"order-{length}": on_word(f"order{length}", lambda word: "".join(sorted(word)), length, 8)
            for length in (3, 4)
        },
        "hash-3": on_word("hash", scrambled, 3, 8),
    },
    f"Eight tasks on words. {REPLY}",
)

sums = TextWorld(
    "five-sums",
    {
        "second": calculated("second", lambda digits: digits[1]),
        "most": calculated("most", max),
        "middle": calculated("middle", lambda digits: sorted(digits)[1]),
        "sum": calculated("sum", sum),
        "power": calculated("power", lambda digits: pow(7, int("".join(map(str, digits))), 101)),
    },
    f"Five tasks on three digits. {REPLY}",
)


def moved(name: str, answer: Callable[[list[int]], list[int]]) -> Task[TaskKnobs]:
    """A question about four digits from 0 to 5, whose answer has four digits, too."""
    return drawn(name, digits_below(6, 4), in_a_row, lambda digits: in_a_row(answer(digits)), signs_right)


def of_bits(name: str, answer: Callable[[list[int]], int]) -> Task[TaskKnobs]:
    """A question about seven bits, which has no partial credit."""
    return drawn(name, digits_below(2, 7), in_a_row, answer, same)


DAYS = ("mo", "tu", "we", "th", "fr", "sa", "su")


def on_days(name: str, answer: Callable[[int, int], object]) -> Task[TaskKnobs]:
    """A question about a day of the week and a number of days."""

    def draw(rng: np.random.Generator) -> tuple[int, int]:
        return int(rng.integers(7)), int(rng.integers(10, 100))

    return drawn(name, draw, lambda one: f"{DAYS[one[0]]} {one[1]}", lambda one: answer(*one), signs_right)


moves = TextWorld(
    "seven-moves",
    {
        "copy": moved("copy", list),
        "turn": moved("turn", lambda digits: [*digits[1:], digits[0]]),
        "mirror": moved("mirror", lambda digits: digits[::-1]),
        "next": moved("next", lambda digits: [(digit + 1) % 6 for digit in digits]),
        "double": moved("double", lambda digits: [2 * digit % 6 for digit in digits]),
        "sums": moved("sums", lambda digits: [sum(digits[: end + 1]) % 6 for end in range(4)]),
        "ranks": moved("ranks", lambda digits: [sorted(digits).index(digit) for digit in digits]),
    },
    f"Seven tasks on four digits. {REPLY}",
)

bits = TextWorld(
    "five-bits",
    {
        "last": of_bits("last", lambda bits: bits[-1]),
        "both": of_bits("both", lambda bits: bits[0] & bits[1]),
        "most": of_bits("most", lambda bits: int(sum(bits) > 3)),
        "ones": of_bits("ones", sum),
        "odd": of_bits("odd", lambda bits: sum(bits) % 2),
    },
    f"Five questions about seven bits. {REPLY}",
)

days = TextWorld(
    "four-days",
    {
        "after": on_days("after", lambda day, number: DAYS[(day + number % 10) % 7]),
        "before": on_days("before", lambda day, number: DAYS[(day - number % 10) % 7]),
        "tens": on_days("tens", lambda day, number: number // 10),
        "weeks": on_days("weeks", lambda day, number: number // 7),
    },
    f"Four tasks on a day of the week and a number of days. {REPLY}",
)


def on_board(name: str, answer: Callable[[list[str]], str]) -> Task[TaskKnobs]:
    """A question about a board of three rows of three signs."""

    def draw(rng: np.random.Generator) -> list[str]:
        signs = "".join("xo-"[at] for at in rng.integers(3, size=9))
        return [signs[:3], signs[3:6], signs[6:]]

    return drawn(name, draw, "/".join, answer, signs_right)


boards = TextWorld(
    "six-boards",
    {
        "middle": on_board("middle", lambda rows: rows[1]),
        "column": on_board("column", lambda rows: "".join(row[0] for row in rows)),
        "diagonal": on_board("diagonal", lambda rows: "".join(rows[at][at] for at in range(3))),
        "upside": on_board("upside", lambda rows: "/".join(reversed(rows))),
        "kinds": on_board("kinds", lambda rows: "".join(str(len(set(row))) for row in rows)),
        "winner": on_board("winner", lambda rows: max("xo-", key="".join(rows).count)),
    },
    f"Six tasks on a board of three rows. {REPLY}",
)
