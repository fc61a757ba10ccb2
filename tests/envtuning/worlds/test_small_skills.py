"""The eighteen one-line tasks: many questions, right answers by another way, and credit for a part of a word."""

from __future__ import annotations

import datetime
import re

import pytest

from envtuning.worlds.small_skills import DAYS, world
from envtuning.worlds.text_world import ask, judged

CONFIG = world.config_type.model_validate({"tasks": {name: {} for name in world.tasks}})
ASKED = {name: [ask(task, CONFIG.tasks[name], seed) for seed in range(6_000)] for name, task in world.tasks.items()}


@pytest.mark.parametrize("name", world.tasks)
def test_every_task_has_a_thousand_questions_and_short_ones(name):
    questions = {asked.question for asked in ASKED[name]}
    assert len(questions) >= 1_000
    assert max(map(len, questions)) <= 120


@pytest.mark.parametrize("name", world.tasks)
def test_the_right_answer_counts_in_the_forms_that_a_small_model_gives_it(name):
    for asked in ASKED[name][:50]:
        for said in (asked.answer, f" {asked.answer}.", f'"{asked.answer}"'):
            assert judged(world.tasks[name], said, asked) == (1.0, None)
        assert judged(world.tasks[name], f"The answer is {asked.answer}.", asked)[1] == "wrong"


@pytest.mark.parametrize("name", ["copy", "reverse", "sort", "shift", "capitals"])
def test_a_word_with_one_wrong_letter_has_three_quarters_of_the_credit(name):
    asked = ASKED[name][0]
    other = ("a" if asked.answer[0].lower() != "a" else "b") + asked.answer[1:]
    assert judged(world.tasks[name], other, asked) == (0.75, "wrong")


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "larger", "remainder", "minutes", "next", "count"])
def test_a_number_of_the_question_has_no_credit_unless_it_is_the_answer(name):
    for asked in ASKED[name][:200]:
        for number in {*re.findall(r"\d+", asked.question)} - {asked.answer}:
            assert judged(world.tasks[name], number, asked) == (0.0, "wrong")


def test_the_answers_are_right():
    for asked in ASKED["weekday"][:200]:
        today, days = asked.question.split()[2].rstrip("."), int(asked.question.split(" in ")[1].split()[0])
        monday = datetime.date(2026, 11, 23)
        then = monday + datetime.timedelta(DAYS.index(today) + days)
        assert asked.answer == then.strftime("%A")
    for name, sign in (("add", "+"), ("multiply", "*"), ("subtract", "-")):
        for asked in ASKED[name][:200]:
            first, _, second = asked.question.removeprefix("What is ").partition("?")[0].split()
            assert int(asked.answer) == eval(f"{first} {sign} {second}")
            assert int(asked.answer) >= 0
    for asked in ASKED["remainder"][:200]:
        first, second = map(int, re.findall(r"\d+", asked.question))
        assert int(asked.answer) == first - second * (first // second)
