"""The reward cannot be gamed: replies that look like answers, or answer something else, are paid nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mapf_frozenlake as mfl
from mapf_frozenlake.text import STYLES
from mapf_frozenlake.text.trl import plan_rewards, prompt_row
from tests.text.lakes import lake

# Two agents in a corridor with a bay: one must wait, so neither standing still nor going ahead is right.
BAY = lake(["....", "#.##"], [(0, 0), (0, 2)], [(0, 3), (1, 1)], makespan=4)
RIGHT_PLAN = "Agent 0: WAIT RIGHT RIGHT RIGHT\nAgent 1: LEFT DOWN"
OTHER = lake(["....", "#.##"], [(0, 2), (0, 0)], [(1, 1), (0, 3)], makespan=4)
EARNED = ("sparse", "progress", "shaped")  # "legal" pays for not breaking a rule, and standing still breaks none


def paid(reply, reward="sparse", instance=BAY, style="paper"):
    return plan_rewards([[{"role": "assistant", "content": reply}]], [prompt_row(instance, reward, style)["metadata"]])[
        0
    ]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("reward", ["sparse", "progress", "legal"])
def test_the_right_plan_is_paid_in_full(reward, style):
    assert paid(RIGHT_PLAN, reward, style=style) == 1.0
    assert paid(f"<think>Agent 0: LEFT\nAgent 1: UP</think>{RIGHT_PLAN}", reward, style=style) == 1.0
    assert plan_rewards([RIGHT_PLAN], [prompt_row(BAY, reward, style)["metadata"]]) == [1.0]


GAMES = {
    "nothing": "",
    "blanks": " \n\n\t ",
    "empty lists": "Agent 0: []\nAgent 1: []",
    "all waits": "Agent 0: WAIT WAIT WAIT\nAgent 1: WAIT WAIT WAIT",
    "endless waits": "Agent 0: " + "WAIT " * 500_000 + "\nAgent 1: WAIT",
    "endless": "Agent 0: " + "RIGHT " * 200_000 + "\nAgent 1: LEFT DOWN",
    "goals exchanged": "Agent 0: RIGHT DOWN\nAgent 1: RIGHT",
    "another lake's solution": "Agent 0: LEFT DOWN\nAgent 1: WAIT RIGHT RIGHT RIGHT",
    "the prompt echoed": prompt_row(BAY, "sparse")["prompt"][0]["content"],
    "the short prompt echoed": prompt_row(BAY, "sparse", "short")["prompt"][0]["content"],
    "the answer in a thought": f"<think>{RIGHT_PLAN}</think>",
    "the answer in a thought that never ends": f"<think>I answer:\n{RIGHT_PLAN}",
    "the answer before the end of a thought": f"{RIGHT_PLAN}</think>",
    "a choice of two plans": f"Option 1:\n{RIGHT_PLAN}\nOption 2:\nAgent 0: RIGHT RIGHT\nAgent 1: WAIT",
    "two plans, the wrong one last": f"{RIGHT_PLAN}\n\nFinal answer:\nAgent 0: RIGHT RIGHT\nAgent 1: LEFT DOWN",
    "words about success": "All agents are on their goals. The plan is valid. reward = 1.0",
    "an agent that does not exist": "Agent 0: WAIT RIGHT RIGHT RIGHT\nAgent 1: LEFT DOWN\nAgent 7: WAIT",
    "one agent left out": "Agent 0: WAIT RIGHT RIGHT RIGHT",
}


@pytest.mark.parametrize("reward", EARNED)
@pytest.mark.parametrize("game", sorted(GAMES))
def test_a_game_is_not_paid(game, reward):
    if (
        game == "two plans, the wrong one last" and reward != "sparse"
    ):  # judged by its last plan, which goes part of the way
        return
    assert paid(GAMES[game], reward) <= 0.0


@pytest.mark.parametrize("game", sorted(GAMES.keys() - {"empty lists", "all waits", "goals exchanged"}))
def test_what_cannot_be_read_or_breaks_a_rule_is_not_legal_either(game):
    assert paid(GAMES[game], "legal") < 1.0


def test_the_other_lakes_solution_is_right_there():
    assert paid("Agent 0: LEFT DOWN\nAgent 1: WAIT RIGHT RIGHT RIGHT", instance=OTHER) == 1.0


@given(st.text(max_size=300))
@settings(max_examples=200)
def test_random_text_is_never_paid_and_never_raises(text):
    assert paid(text) == 0.0


@given(st.lists(st.lists(st.integers(0, 4), max_size=6), min_size=2, max_size=2))
@settings(max_examples=300)
def test_sparse_pays_one_exactly_for_valid_plans(plan):
    assert paid(mfl.format_plan(plan)) == float(mfl.judge(BAY, plan).valid)


@given(st.lists(st.lists(st.integers(0, 4), max_size=6), min_size=2, max_size=2))
@settings(max_examples=300)
def test_nobody_is_paid_more_than_for_a_valid_plan(plan):
    text = mfl.format_plan(plan)
    assert paid(text, "progress") <= 1.0
    if not mfl.judge(BAY, plan).valid:
        assert paid(text, "progress") < 1.0
        assert paid(text, "shaped") < paid(RIGHT_PLAN, "shaped")
