"""The family of reasoning-gym's short data sets: chosen by a rule alone, and its questions come back as they were asked."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lazily import needed

needed("torch", extra="exam")
pytest.importorskip("reasoning_gym", reason="needs reasoning-gym: pip install 'mapf-frozenlake[reasoning-gym]'")

from envtuning.exam import reasoning  # noqa: E402
from envtuning.exam.families import HELD_OUT  # noqa: E402
from envtuning.exam.reasoning import END, PAD, SHORT, SIGNS, ReasoningTasks, tokens_of  # noqa: E402
from envtuning.worlds.reasoning_gym import USED, dataset_at  # noqa: E402

FAMILY = next(family for family in HELD_OUT if family.content == "reasoning")


def short(name: str) -> bool:
    made = dataset_at(name, {})
    for index in range(reasoning.LOOKED_AT if name != "number_sequence" else 20):  # each of its questions takes .1 s
        entry = made[index]
        if len(entry["question"]) > reasoning.LONGEST_QUESTION or len(entry["answer"]) > reasoning.LONGEST_ANSWER:
            return False
    return True


def test_the_data_sets_are_all_that_the_rule_takes():
    assert tuple(name for name in USED if short(name)) == SHORT


@pytest.fixture
def few(monkeypatch, tmp_path):
    monkeypatch.setenv("ENVTUNING_EXAM", str(tmp_path))
    monkeypatch.setattr(reasoning, "BANK", 10)
    monkeypatch.setattr(reasoning, "OF_TEST", 4)
    monkeypatch.setattr(
        reasoning, "asked", lambda name: [(f"What is {name[0]}{k}? Say it.", f"{name}{k}") for k in range(10)]
    )
    reasoning.bank.cache_clear()
    yield
    reasoning.bank.cache_clear()


def test_answers_are_characters_and_an_end_and_tests_have_questions_of_their_own(few):
    tasks = ReasoningTasks(FAMILY, 0)
    signs = {place: sign for sign, place in SIGNS.items()}

    def answers(purpose):
        rows = tasks.make(np.repeat(np.arange(10), 50), np.random.default_rng(0), purpose)
        said = rows.tokens[:, -tasks.answer :]
        assert ((said != PAD) == rows.answer).all()
        assert ((said == END).sum(1) == 1).all()
        return {"".join(signs[token] for token in row if token in signs) for row in said.tolist()}

    trained, tested = answers("training"), answers("test")
    assert not trained & tested
    assert {answer[-1] for answer in trained} == set("012345")
    assert {answer[-1] for answer in tested} == set("6789")
    assert {answer[:-1] for answer in trained} == set(SHORT)


def test_what_every_question_has_is_one_token():
    bank = tokens_of([[("Calculate 12", "1"), ("Calculate 345", "2")], [("Spell ab", "ba"), ("Spell c", "c")]])
    assert bank.pieces == 2
    assert (bank.questions != PAD).sum(-1).tolist() == [[3, 4], [3, 2]]


def test_roots_hide_which_data_set_a_task_is(few):
    orders = {tuple(ReasoningTasks(FAMILY, seed).order) for seed in range(5)}
    assert len(orders) == 5
    assert {len(ReasoningTasks(FAMILY, seed).pretrained) for seed in range(5)} == {FAMILY.mastered}
