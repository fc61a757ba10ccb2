"""What a player is told: who, where, why, and only moves that would really have been possible."""

import re

import numpy as np
import pytest
from hypothesis import given, settings

import mapf_frozenlake as mfl
from mapf_frozenlake.feedback import explain, explain_step
from mapf_frozenlake.judge import play
from tests.oracles.brute_force import MOVES, is_ice
from tests.text.lakes import DOWN, LEFT, RIGHT, UP, WAIT, instances_with_plans, lake

BOARD = ["....", ".#..", "...."]
STARTS, GOALS = [(0, 0), (0, 2), (2, 3)], [(2, 2), (2, 0), (0, 3)]

SENTENCES = {
    "off the board": (
        [[UP], [], []],
        "Move 1: Agent 0 at (0, 0) moved UP, off the board (rows 0 to 2, columns 0 to 3): it stayed. "
        "From (0, 0) it could have gone DOWN to (1, 0) or RIGHT to (0, 1), or waited.",
    ),
    "a hole": (
        [[DOWN, RIGHT], [], []],
        "Move 2: Agent 0 at (1, 0) moved RIGHT into (1, 1), a hole, and fell. "
        "From (1, 0) it could have gone DOWN to (2, 0) or UP to (0, 0), or waited.",
    ),
    "one cell": (
        [[RIGHT], [LEFT], []],
        "Move 1: Agent 0 at (0, 0) moved RIGHT to (0, 1) at the same time as agent 1 from (0, 2): both had to stay. "
        "From (0, 0) it could have gone DOWN to (1, 0), or waited.\n"
        "Move 1: Agent 1 at (0, 2) moved LEFT to (0, 1) at the same time as agent 0 from (0, 0): both had to stay. "
        "From (0, 2) it could have gone DOWN to (1, 2) or RIGHT to (0, 3), or waited.",
    ),
    "somebody stands there": (
        [[RIGHT, RIGHT], [], []],
        "Move 2: Agent 0 at (0, 1) moved RIGHT to (0, 2), where agent 1 stood: it had to stay. "
        "From (0, 1) it could have gone LEFT to (0, 0), or waited.",
    ),
    "somebody stands there on its goal": (
        [[], [RIGHT], [UP, UP, RIGHT]],
        "Move 2: Agent 2 at (1, 3) moved UP to (0, 3), where agent 1 stood: it had to stay. "
        "From (1, 3) it could have gone LEFT to (1, 2) or DOWN to (2, 3), or waited.\n"
        "Move 3: Agent 2 at (1, 3) moved RIGHT, off the board (rows 0 to 2, columns 0 to 3): it stayed. "
        "From (1, 3) it could have gone LEFT to (1, 2) or DOWN to (2, 3), or waited.",
    ),
    "an exchange": (
        [[RIGHT, RIGHT], [WAIT, LEFT], []],
        "Move 2: Agent 0 at (0, 1) moved RIGHT and agent 1 at (0, 2) moved LEFT: they cannot exchange cells, so both had "
        "to stay. From (0, 1) it could have gone LEFT to (0, 0).\n"
        "Move 2: Agent 1 at (0, 2) moved LEFT and agent 0 at (0, 1) moved RIGHT: they cannot exchange cells, so both had "
        "to stay. From (0, 2) it could have gone DOWN to (1, 2) or RIGHT to (0, 3).",
    ),
    "short of the goal, and gone on from it": (
        [[DOWN, DOWN], [LEFT], [UP, UP, LEFT]],
        "Agent 0 ended at (2, 0) after 2 moves, 2 steps short of its goal (2, 2). "
        "From (2, 0) the shortest way goes RIGHT to (2, 1).\n"
        "Agent 1 ended at (0, 1) after 1 move, 3 steps short of its goal (2, 0). "
        "From (0, 1) the shortest way goes LEFT to (0, 0).\n"
        "Agent 2 stood on its goal (0, 3) after move 2 and left it with move 3, to end at (0, 2). It could have waited there.",
    ),
    "optimal": (
        [[DOWN, DOWN, RIGHT, RIGHT], [LEFT, LEFT, DOWN, DOWN], [UP, UP]],
        "Valid and optimal: all agents are on their goals after 4 steps, the fewest possible.",
    ),
    "not optimal": (
        [[WAIT, DOWN, DOWN, RIGHT, RIGHT], [WAIT, LEFT, LEFT, DOWN, DOWN], [UP, UP]],
        "Valid but not optimal: all agents are on their goals after 5 steps; 4 would have been enough.",
    ),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_sentences(name):
    plan, expected = SENTENCES[name]
    assert explain(lake(BOARD, STARTS, GOALS, makespan=4), plan) == expected


def test_on_its_goal_is_said():
    instance = lake(["...", "..."], [(0, 0), (1, 1)], [(0, 2), (0, 1)])
    assert "to (0, 1), where agent 1 stood, on its goal: it had to stay." in explain(instance, [[WAIT, RIGHT], [UP]])


def test_no_way_out_alone():
    instance = lake(["..."] * 3, [(0, 0), (0, 1), (0, 2)], [(2, 0), (2, 1), (2, 2)])
    before, actions = instance.starts, np.array([RIGHT, RIGHT, UP])
    _, events = mfl.joint_move(instance.holes, before, actions)
    blocked, _, off = explain_step(instance.holes, instance.goals, before, actions, events)
    assert blocked == (
        "Agent 0 at (0, 0) could not move RIGHT to (0, 1), because agent 1 was stopped there: no fault of its own."
    )
    assert "off the board" in off


def test_goal_without_a_way():
    instance = lake([".#.", ".#."], [(0, 0)], [(0, 2)])
    assert explain(instance, [[WAIT]]) == (
        "Agent 0 ended at (0, 0) after 1 move; no way over ice leads from there to its goal (0, 2)."
    )


def test_only_the_first_violations_are_told():
    text = explain(lake(BOARD, STARTS, GOALS), [[UP] * 7, [], []])
    assert text.splitlines()[-1] == "4 more violations followed."
    assert len(text.splitlines()) == 4


def test_an_unread_reply():
    text = explain(lake(BOARD, STARTS, GOALS), mfl.parse_plan("Agent 0: RIGHT JUMP", 3))
    assert text.startswith("No plan could be read from the reply: line 1, column 16, at 'JUMP':")


@given(instances_with_plans(max_side=4, max_agents=4))
@settings(max_examples=250)
def test_every_move_that_is_offered_was_possible(case):
    """Changing only that agent's move breaks no rule for it, whatever becomes of the others' own faults."""
    instance, plan = case
    playback = play(instance, plan)
    holes = instance.holes.tolist()
    for step in range(len(playback.events)):
        before, actions, events = playback.positions[step], playback.actions[step], playback.events[step]
        sentences = explain_step(instance.holes, instance.goals, before, actions, events)
        assert len(sentences) == np.count_nonzero(events)
        for sentence in sentences:
            agent = int(re.match(r"Agent (\d+) at", sentence)[1])
            _, _, offer = sentence.partition("could have ")
            offered = [getattr(mfl.Action, word) for word in re.findall(r"LEFT|DOWN|RIGHT|UP", offer)]
            for action in [*offered, *([WAIT] if "waited" in offer else [])]:
                assert is_harmless(holes, before, actions, agent, int(action)), sentence


def is_harmless(holes, before, actions, agent, action):
    """By the rules, plainly: it stays on ice, and nobody else wants its cell or an exchange with it."""
    here = [(int(row), int(col)) for row, col in before]
    wants = [(row + MOVES[int(a)][0], col + MOVES[int(a)][1]) for (row, col), a in zip(here, actions)]
    row, col = here[agent]
    wants[agent] = (row + MOVES[action][0], col + MOVES[action][1])
    if not is_ice(holes, wants[agent]):
        return False
    board = [[False] * len(holes[0]) for _ in holes]
    wants = [want if is_ice(board, want) else stood for want, stood in zip(wants, here)]
    others = [other for other in range(len(here)) if other != agent]
    clash = any(wants[other] == wants[agent] for other in others)
    exchange = any(wants[other] == here[agent] and here[other] == wants[agent] for other in others if action != WAIT)
    return not (clash or exchange)


def test_when_no_single_change_helps():
    """At the dead end of a corridor, with the other coming in."""
    corridor = lake(["....", "####"], [(0, 0), (0, 2)], [(0, 1), (0, 3)])
    before, actions = np.array([(0, 0), (0, 1)], np.int16), np.array([RIGHT, LEFT])
    _, events = mfl.joint_move(corridor.holes, before, actions)
    first, second = explain_step(corridor.holes, corridor.goals, before, actions, events)
    assert first.endswith("No other move of agent 0 alone was possible: another agent must move differently too.")
    assert second.endswith("From (0, 1) it could have gone RIGHT to (0, 2).")


def test_of_several_visits_to_the_goal_the_last_is_told():
    """It stands on its goal after moves 1 and 3, and leaves it for good with move 4."""
    board = lake(["...", "..."], [(0, 0)], [(0, 1)])
    assert explain(board, [[RIGHT, LEFT, RIGHT, RIGHT]]) == (
        "Agent 0 stood on its goal (0, 1) after move 3 and left it with move 4, to end at (0, 2). It could have waited there."
    )
