"""The families of the exam: their declared distribution, and what their tasks are."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest

from envtuning.errors import SpecError
from envtuning.exam.families import (
    CODES,
    COIN,
    DEVELOPMENT,
    DRAWN,
    HALF_RIGHT,
    HELD_OUT,
    HOPELESS,
    LACKING,
    MASTERED,
    NULL,
    REQUIRED,
    Family,
    drawn,
)
from envtuning.exam.tasks import LetterTasks, blind_guess

ALL = Family(name="all kinds", mastered=3, lacking=3, hopeless=2, half_right=2, coins=2, letters=26, lengths=(4,))
REWARD = next(family for family in HELD_OUT if family.learning == "reward")


def of_kind(tasks: LetterTasks, kind: int) -> int:
    return int(np.flatnonzero(tasks.kind == kind)[0])


def asked(tasks: LetterTasks, task: int, count: int = 3_000, seed: int = 0, **purpose) -> tuple[np.ndarray, np.ndarray]:
    """Questions and answers of one task."""
    tokens, answer = tasks.make(np.full(count, task), np.random.default_rng(seed), **purpose)
    assert answer.all()
    return tokens[:, 1 : 1 + tasks.question], tokens[:, -tasks.answer :]


def best_by_letter(question: np.ndarray, answer: np.ndarray) -> float:
    """How often the letters are right if each is the most frequent one for its own letter of the question: what a code can give."""
    right = 0
    for place in range(question.shape[1]):
        for letter in np.unique(question[:, place]):
            right += np.bincount(answer[question[:, place] == letter, place]).max()
    return right / question.size


def test_the_required_kinds_are_there():
    names = {family.name for family in (*DEVELOPMENT, *HELD_OUT)}
    assert names >= {"codes-slow", "half-right", "coins", "by-reward", "reasoning", NULL}
    null = next(family for family in HELD_OUT if family.name == NULL)
    assert null.lacking == 0  # nothing can be learnt


@pytest.mark.parametrize("kind", [MASTERED, LACKING])
def test_a_code_is_a_function_of_the_letter(kind):
    tasks = LetterTasks(ALL, 3)
    assert best_by_letter(*asked(tasks, of_kind(tasks, kind))) == 1.0


def test_half_of_a_half_right_answer_is_a_code_and_half_is_hopeless():
    tasks = LetterTasks(ALL, 3)
    question, answer = asked(tasks, of_kind(tasks, HALF_RIGHT))
    assert best_by_letter(question[:, :2], answer[:, :2]) == 1.0
    assert best_by_letter(question[:, 2:], answer[:, 2:]) < 0.25


def test_no_letter_tells_a_hopeless_answer():
    tasks = LetterTasks(ALL, 3)
    assert best_by_letter(*asked(tasks, of_kind(tasks, HOPELESS))) < 0.25


def test_a_coin_has_two_answers_and_the_question_does_not_say_which():
    tasks = LetterTasks(ALL, 3)
    question, answer = asked(tasks, of_kind(tasks, COIN))
    different, counts = np.unique(answer, axis=0, return_counts=True)
    assert len(different) == 2
    assert abs(counts[0] / counts.sum() - 0.5) < 0.05
    assert best_by_letter(question, answer) < 0.62  # of a few hundred tosses for a letter, the better side


def test_a_blind_guess_is_the_best_constant_answer():
    tasks = LetterTasks(CODES, 0)
    blind = np.array(tasks.blind)
    assert 0.06 < blind[tasks.kind == HOPELESS].mean() < 0.11  # about 8/97
    assert 0.03 < blind[tasks.kind == LACKING].mean() < 0.06  # about 1/26
    coin = LetterTasks(ALL, 3)
    assert abs(coin.blind[of_kind(coin, COIN)] - 0.5) < 0.05


def test_blind_guess_counts_letters_that_are_there():
    tasks = LetterTasks(Family(name="two lengths", lengths=(2, 4), letters=4), 0)
    rows = tasks.make(np.array([0, 0, 0]), np.random.default_rng(0))
    assert rows.answer.sum(1).tolist() == [2, 2, 2]
    said = rows.tokens[:, -4:-2]
    best = sum(np.bincount(said[:, place]).max() for place in range(2)) / 6
    assert blind_guess(rows, 4) == pytest.approx(best)


def test_by_reward_a_root_is_taught_only_the_letters_that_it_may_know():
    tasks = LetterTasks(REWARD, 5)
    task = of_kind(tasks, LACKING)
    known = tasks.known[task]
    assert REWARD.taught[0] <= known.sum() <= REWARD.taught[1]
    question, answer = asked(tasks, task, purpose="pretraining")
    right = answer == tasks.codes[task][question]
    assert right[known[question]].all()
    assert abs(right[~known[question]].mean() - 1 / 8) < 0.03
    question, answer = asked(tasks, task)
    assert (answer == tasks.codes[task][question]).all()


def test_roots_differ_and_are_functions_of_their_seed():
    one, again, other = (LetterTasks(CODES, seed) for seed in (1, 1, 2))
    assert (one.kind == again.kind).all()
    assert (one.codes == again.codes).all()
    assert (one.kind != other.kind).any()
    assert np.bincount(one.kind).tolist() == [8, 8, 8]


def test_drawn_families_are_from_the_declared_distribution():
    assert drawn(1) == drawn(1) != drawn(2)
    assert len(drawn(1)) == DRAWN
    some = [family for seed in range(100, 140) for family in drawn(seed)]
    assert {family.tasks for family in some} == {24}
    assert min(family.mastered for family in some) >= 1
    assert {family.content for family in some} == {"codes", "pairs", "algorithms"}
    assert {family.learning for family in some} == {"supervised", "reward"}
    for field in ("half_right", "coins", "hopeless"):
        assert {getattr(family, field) > 0 for family in some} == {True, False}


def test_a_budget_is_cut_into_equal_stages():
    assert CODES.stage(6) == 60
    assert CODES.stage(18) == 20
    for wrong in (1, 7, 1000):
        with pytest.raises(SpecError, match="give one of 2, 3, 4"):
            CODES.stage(wrong)


def test_parts_of_codes_alone_are_learnt_by_reward():
    with pytest.raises(ValueError, match="codes only"):
        Family(name="wrong", content="algorithms", learning="reward")


def test_the_families_are_frozen():
    """They were committed before any engineer was tuned for them. Whoever changes one makes another exam, and gives it another name."""
    named = [*DEVELOPMENT, *REQUIRED, *(family for seed in range(20) for family in drawn(seed))]
    tasks = [LetterTasks(family, 0) for family in named if family.content != "reasoning"]
    rows = [each.make(np.arange(each.family.tasks), np.random.default_rng(0)).tokens.tolist() for each in tasks]
    text = json.dumps([[family.model_dump(mode="json") for family in named], rows])
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "d9f5339be86490a1"
