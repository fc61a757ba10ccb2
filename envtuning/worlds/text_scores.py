"""Scores of an answer, from 0 to 1, where only the right answer scores 1: whether it is right, or how nearly.

A part of the credit shows a policy that gets nearer to the answer before it is ever right.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

BLIND = 2_000  # questions of a slice from which the score of a blind guess is estimated


class Asked(NamedTuple):
    """A question with its right answer."""

    question: str
    answer: str
    data: Any = None  # further data for the scorer; in memory only


Scorer = Callable[[str, Asked], float]


def same(answer: str, asked: Asked) -> float:
    """1 if the answer is exactly right, except for surrounding blanks; else 0."""
    return float(answer.strip() == asked.answer.strip())


def signs_right(answer: str, asked: Asked) -> float:
    """The part of the answer's signs that stand in their places; missing and further signs are wrong."""
    return _part_right(answer.strip(), asked.answer.strip())


def words_right(answer: str, asked: Asked) -> float:
    """The part of the answer's words that stand in their places; missing and further words are wrong."""
    return _part_right(answer.split(), asked.answer.split())


def nearness(answer: str, asked: Asked) -> float:
    """1 for the right number, 1/2 for one that differs by its size (by 1, if it is smaller), and so on towards 0; 0 for no number."""
    if same(answer, asked):
        return 1.0
    try:
        said, right = float(answer), float(asked.answer)
    except ValueError:
        return 0.0
    apart = abs(said - right) / max(1.0, abs(right))
    near = 1 / (1 + apart) if math.isfinite(apart) else 0.0
    if near == 1.0 and right.is_integer() and Decimal(answer) != Decimal(asked.answer):
        return math.nextafter(1.0, 0.0)  # a float has fewer digits than the number
    return near


def _part_right(said: Sequence[str], right: Sequence[str]) -> float:
    longer = max(len(said), len(right))
    return sum(one == other for one, other in zip(said, right, strict=False)) / longer if longer else 1.0


IN_WORDS: dict[Scorer, str] = {
    same: "1 for a right answer, else 0",
    signs_right: "the part of the answer's signs that stand in their places",
    words_right: "the part of the answer's words that stand in their places",
    nearness: "1 for the right number, 1/2 for one that differs by its size, and so on towards 0",
}


def in_words(scorers: dict[str, Scorer]) -> str:
    """What the scores of some tasks are; empty if every task scores 1 or 0."""
    if all(scorer is same for scorer in scorers.values()):
        return ""
    told: dict[str, list[str]] = {}
    for task, scorer in scorers.items():
        told.setdefault(IN_WORDS.get(scorer, "the task's own score of the answer"), []).append(task)
    if len(told) == 1:
        return next(iter(told))
    return "; ".join(f"{', '.join(tasks)}: {said}" for said, tasks in told.items())


def likeliest(answers: Sequence[Sequence[Any]]) -> list[Any]:
    """The likeliest part of an answer at each place; a part of a short answer counts for more."""
    places: list[Counter[Any]] = [Counter() for _ in range(max(map(len, answers), default=0))]
    for answer in answers:
        for place, part in zip(places, answer, strict=False):
            place[part] += 1 / len(answer)  # type: ignore[assignment]  # counts need not be whole
    return [place.most_common(1)[0][0] for place in places]


def blind_score(asked: Sequence[Asked], score: Callable[[str, Asked], float]) -> float:
    """About the mean score of the best answer that ignores the question.

    Half of the questions choose among a few constant answers, and the others score the chosen one, so that chance adds nothing.
    """
    chosen_by, scored_on = asked[::2], asked[1::2]
    answers = [one.answer for one in chosen_by]
    places = "".join(likeliest(answers))
    usual = sorted(map(len, answers))[len(answers) // 2]
    candidates = [places, places[:usual], *(answer for answer, _ in Counter(answers).most_common(3))]
    best = max(dict.fromkeys(candidates), key=lambda one: sum(score(one, each) for each in chosen_by))
    return sum(score(best, each) for each in scored_on) / len(scored_on)
