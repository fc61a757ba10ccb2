"""Rows in reasoning-gym's form: the answer they carry is worth 1, and any answer has a score."""

import json

import pytest

import mapf_frozenlake as mfl
from mapf_frozenlake import score_answer, text_dataset

CONFIG = mfl.LakeConfig.single(4, 3, hole_ratio=0.3, reward="progress")


def test_rows_are_plain_json_and_repeatable():
    rows = text_dataset(CONFIG, 6, seed=3)
    assert json.loads(json.dumps(rows)) == rows
    assert text_dataset(CONFIG, 6, seed=3) == rows
    assert text_dataset(CONFIG, 3, seed=3) == rows[:3]
    assert {"question", "answer", "metadata"} == set(rows[0])


@pytest.mark.parametrize("style", ["paper", "coordinates", "short"])
def test_their_own_answer_is_worth_one_and_optimal(style):
    for row in text_dataset(CONFIG, 6, seed=1, style=style):
        assert score_answer(row["answer"], row) == 1.0
        assert score_answer(f"<think>hm</think>\n{row['answer']}", row) == 1.0
        instance = mfl.from_text(row["question"])
        assert mfl.judge(instance, mfl.parse_plan(row["answer"], 3)).makespan == row["metadata"]["makespan"]


def test_any_answer_has_a_score():
    row = text_dataset(CONFIG, 1, seed=0)[0]
    assert score_answer(None, row) == 0.0
    assert score_answer("no idea", row) == 0.0
    stay = score_answer("Agent 0: WAIT\nAgent 1: WAIT\nAgent 2: WAIT", row)
    assert stay == 0.0
    first = row["answer"].splitlines()
    part = score_answer("\n".join([first[0], "Agent 1: WAIT", "Agent 2: WAIT"]), row)
    assert part in (0.0, 1 / 3)


def test_rows_of_a_given_set():
    instances = mfl.generate(CONFIG, n=4, seed=5)
    rows = text_dataset(instances)
    assert [mfl.from_text(row["question"]) for row in rows] == list(instances)
    assert rows[0]["metadata"]["reward"] == "progress"
    assert len(text_dataset(instances, 2)) == 2


def test_how_many_must_be_said():
    with pytest.raises(mfl.LakeError, match="n=None"):
        text_dataset(CONFIG)


def test_rows_of_a_shipped_suite():
    rows = mfl.text_dataset("quick", n=3)
    assert [mfl.score_answer(row["answer"], row) for row in rows] == [1.0] * 3
    assert mfl.from_text(rows[0]["metadata"]["text"]) == mfl.load_suite("quick")[0]
