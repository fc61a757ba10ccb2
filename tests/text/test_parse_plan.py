"""What language models really write: each form is read as meant, or refused with place and reason, never guessed."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mapf_frozenlake as mfl
from benchmarks.fuzz import replies
from mapf_frozenlake import LakeError, ParseError
from mapf_frozenlake.text import parse_moves
from tests.text.lakes import plans

LETTERS = "LDRUW"


def plan_of(*lines):
    return [[LETTERS.index(letter) for letter in line] for line in lines]


READ = {
    "plain lines": ("Agent 0: RIGHT RIGHT DOWN\nAgent 1: LEFT WAIT", "RRD", "LW"),
    "in another order": ("Agent 1: LEFT WAIT\nAgent 0: RIGHT RIGHT DOWN", "RRD", "LW"),
    "thoughts are not answers": ("<think>Agent 0: UP\nAgent 1: UP</think>Agent 0: R R D\nAgent 1: L", "RRD", "L"),
    "a thought whose beginning stood in the prompt": ("Agent 0: UP</think>\n\nAgent 0: R\nAgent 1: L L", "R", "LL"),
    "channels": ("<|channel|>analysis Agent 0: U<|channel|>final<|message|>Agent 0: R\nAgent 1: L L", "R", "LL"),
    "bold labels": ("**Agent 0:** RIGHT, DOWN\n**Agent 1:** UP", "RD", "U"),
    "the answer tag": ("Agent 0: U? U!\n<answer>Agent 0: RIGHT UP\nAgent 1: DOWN</answer> Agent 0: UP", "RU", "D"),
    "a fenced object": ('```json\n{"agent_0": ["RIGHT", "DOWN"], "agent_1": ["left"]}\n```', "RD", "L"),
    "lists": ('{"plan": [["RIGHT", "DOWN"], ["LEFT", "UP"]], "why": "left is blocked"}', "RD", "LU"),
    "records": ('[{"agent": 0, "actions": ["RIGHT"]}, {"agent": 1, "actions": []}]', "R", ""),
    "nested records": ('{"agents": [{"id": 0, "plan": ["RIGHT"]}, {"id": 1, "plan": ["UP"]}]}', "R", "U"),
    "number keys": ('{"0": ["RIGHT", "DOWN", "UP"], "1": ["LEFT"]}', "RDU", "L"),
    "strings in an object": ('{"agent_0": "RIGHT DOWN", "agent_1": "LEFT", "reasoning": "Go right."}', "RD", "L"),
    "an answer inside a string": ('{"answer": "Agent 0: RIGHT DOWN\\nAgent 1: LEFT"}', "RD", "L"),
    "a Python dict": ("plan = {0: ['RIGHT', 'UP'], 1: ['LEFT']}", "RU", "L"),
    "a tuple": ("Agent 0: ['RIGHT', 'UP']; Agent 1: ('LEFT',)", "RU", "L"),
    "a table": ("| Agent 0 | RIGHT, DOWN |\n| Agent 1 | UP |", "RD", "U"),
    "arrows as moves": ("Agent 0: → → ↓\nAgent 1: ← ⬆️", "RRD", "LU"),
    "arrows between words": ("Agent 0: RIGHT → RIGHT → DOWN\nAgent 1: stay -> north", "RRD", "WU"),
    "one word of letters": ("Agent 0: RRD\nAgent 1: LLW", "RRD", "LLW"),
    "compass letters": ("Agent 0: E E S\nAgent 1: W W", "RRD", "LL"),
    "synonyms": ("Agent 0: east, no-op, Noop, stay in place\nAgent 1: upwards; hold; do nothing", "RWWW", "UWW"),
    "prefixes": ("Agent 0: MOVE_RIGHT MOVE_UP\nAgent 1: go left, then wait", "RU", "LW"),
    "board letters": ("S: RIGHT\ns: LEFT LEFT", "R", "LL"),
    "agents by the board's letters": ("Agent S: RIGHT\nAgent s: LEFT LEFT", "R", "LL"),
    "agents by the alphabet": ("Agent A: RIGHT\nAgent B: LEFT LEFT", "R", "LL"),
    "agents in words": ("Agent zero: right\nagent one: left, left", "R", "LL"),
    "agents counted from 1": ("Agent 1: RIGHT\nAgent 2: LEFT LEFT", "R", "LL"),
    "short labels": ("A0: RIGHT\nA1: UP UP", "R", "UU"),
    "bare numbers": ("0: R R D\n1: L L", "RRD", "LL"),
    "bare rows": ("RIGHT RIGHT DOWN\nLEFT", "RRD", "L"),
    "remarks and cells": (
        "Agent 0's plan: RIGHT (0, 1), DOWN (1,1)\nAgent 1: UP (to stay on its goal). Done.",
        "RD",
        "U",
    ),
    "routes in the label": ("Agent 0 (S) from (0, 0) to (2, 2): RIGHT\nAgent 1 (start (0,1)): UP UP", "R", "UU"),
    "repetitions": ("Agent 0: RIGHT x2, DOWN\nAgent 1: WAIT (x3), UP", "RRD", "WWWU"),
    "numbered lines": ("### Agent 0\n1. RIGHT\n2. DOWN\n\n### Agent 1\n1. LEFT\n2. Wait\n\nDone.", "RD", "LW"),
    "steps": ("Step 1: Agent 0: RIGHT, Agent 1: LEFT\nStep 2: Agent 0: DOWN, Agent 1: WAIT", "RD", "LW"),
    "steps as objects": ('[{"agent_0": "RIGHT", "agent_1": "LEFT"}, {"agent_0": "UP", "agent_1": "LEFT"}]', "RU", "LL"),
    "the last answer": ("Agent 0: R R\nAgent 1: L L\nNo:\nAgent 0: R U\nAgent 1: L", "RU", "L"),
    "lists, then rows alone": ('[["RIGHT", "DOWN"], ["LEFT"]]\n\nBetter:\nUP UP UP\nDOWN WAIT DOWN', "UUU", "DWD"),
    "an object, then numbered rows": ('```json\n{"0": ["R", "D"], "1": ["L"]}\n```\n0: U U U\n1: D W D', "UUU", "DWD"),
    "rows alone, then lists": ('UP UP UP\nDOWN WAIT DOWN\n\n[["RIGHT", "DOWN"], ["LEFT"]]', "RD", "L"),
    "lists, then the same as rows alone": ('[["R", "D"], ["L", "U"]]\nRIGHT DOWN\nLEFT UP', "RD", "LU"),
    "lists, then one word": ('[["R", "D"], ["L", "U"]]\nRight!', "RD", "LU"),
    "prose before": ("I think agent 0 moves right and agent 1: waits.\n\nAgent 0: R R\nAgent 1: L", "RR", "L"),
    "prose behind that agrees": ("Agent 0: R U\nAgent 1: L\n\nAgent 0: RIGHT to (0, 1), then UP.", "RU", "L"),
    "no last line break, trailing token": ("Agent 0: RIGHT\nAgent 1: LEFT UP<|im_end|>", "R", "LU"),
    "a route in the check": ("Agent 0: R U\nAgent 1: L\n\nCheck:\n- Agent 0: (1, 0) → (1, 1) → (0, 1) ✓", "RU", "L"),
    "a count behind": ("Agent 0: R U. 2 steps.\nAgent 1: L", "RU", "L"),
    "remarks that are moves": ("Legend: [UP ↑]\nAgent 0: R U\nAgent 1: L", "RU", "L"),
    "the number of moves in brackets": ("Agent 0: RIGHT UP (2 moves)\nAgent 1: LEFT (1 step in total)", "RU", "L"),
    "a remark with a move": ("Agent 0: RIGHT (let the other pass)\nAgent 1: LEFT (no hole here)", "R", "L"),
    "chains of hyphens": ("Agent 0: RIGHT-DOWN-UP\nAgent 1: LEFT", "RDU", "L"),
    "a draft, thoughts about this or that, an answer": (
        "Agent 0: R R\nAgent 1: L L\nOne or the other must wait, so the final answer is:\nAgent 0: R U\nAgent 1: L",
        "RU",
        "L",
    ),
    "one agent": ("RIGHT RIGHT DOWN", "RRD"),
    "one agent, one move a line": ("RIGHT\nDOWN\n", "RD"),
    "one agent's list": ('["RIGHT", "DOWN"]', "RD"),
}


@pytest.mark.parametrize("name", READ)
def test_reads(name):
    reply, *lines = READ[name]
    assert mfl.parse_plan(reply, len(lines)) == plan_of(*lines)


REFUSED = {
    "nothing": ("", 1, 1, "the reply is empty"),
    "only prose": ("I cannot solve this.", 1, 21, "ends without an answer"),
    "a thought without end": ("<think>hm Agent 0: RIGHT", 1, 1, "never ends"),
    "only thoughts": ("<think>Agent 0: R\nAgent 1: L</think>", 2, 19, "no answer outside its thoughts"),
    "a missing agent": ("Agent 0: RIGHT\n", 1, 1, "no moves for agent 1"),
    "too many agents": (
        "Agent 0: R\nAgent 1: R\nAgent 2: R",
        1,
        1,
        "moves for agents 0, 1, 2; there are only agents 0 to 1",
    ),
    "an unknown move": ("Agent 0: RIGHT JUMP\nAgent 1: UP", 1, 16, "'JUMP' is not a move"),
    "an unknown first move": ("Agent 0: JUMP\nAgent 1: UP", 1, 10, "no move follows agent 0"),
    "an unknown character": ("Agent 0: RIGHT ^\nAgent 1: UP", 1, 16, "'^' is not a move"),
    "cells": ("Agent 0: (0,0) -> (0,1)\nAgent 1: (1,1)", 1, 1, "cells instead of moves"),
    "numbers": ('{"agent_0": [2], "agent_1": [0]}', 1, 14, "may be a count or a step"),
    "numbers in a table": ("| Agent 0 | 2 | 1 |\n| Agent 1 | UP |", 1, 13, "no move follows agent 0"),
    "two numbers": ('{"agent_0": [2, 2], "agent_1": ["UP"]}', 1, 3, "cells instead of moves"),
    "a number without a move": ("Agent 0: 1. UP 2. 3. UP\nAgent 1: UP", 1, 16, "no move stands behind"),
    "cells in brackets": ('{"agent_0": [(0, 0), (0, 1)], "agent_1": ["UP"]}', 1, 3, "cells instead of moves"),
    "nothing in brackets": ("Agent 0: [?]\nAgent 1: UP", 1, 1, "no move stands in agent 0's list"),
    "arrows that may be moves": ("Agent 0: → (0, 1) → (0, 2)\nAgent 1: UP", 1, 19, "an arrow between two cells"),
    "a count": ("Agent 0: RIGHT 3 times\nAgent 1: UP", 1, 16, "may be a count or a step"),
    "an ellipsis": ("Agent 0: RIGHT ... DOWN\nAgent 1: UP", 1, 16, "moves are left out"),
    "a missing element": ('{"agent_0": ["UP", , "UP"], "agent_1": ["UP"]}', 1, 18, "missing between two commas"),
    "cut off": ("Agent 0: [RIGHT]\nAgent 1: [UP, ", 2, 13, "not closed"),
    "letters of two alphabets": ("Agent 0: L N\nAgent 1: D", 1, 12, "'N' may be one of"),
    "letters of either alphabet": ("Agent 0: W\nAgent 1: S W", 1, 10, "'W' may be one of"),
    "rows or columns": ("RIGHT LEFT\nLEFT UP", 1, 1, "a row may be an agent or a step"),
    "too many rows": ("RIGHT LEFT UP\nLEFT\nUP", 1, 1, "rows of moves: 3, agents: 2"),
    "too many lists": ('[["UP"], ["UP"], ["UP"]]', 1, 1, "lists of moves: 3, agents: 2"),
    "a later change": ("Agent 0: R R\nAgent 1: L\nBetter:\nAgent 1: L L", 4, 1, "other moves here"),
    "a later change of the first": ("Agent 0: R R\nAgent 1: L\nBetter:\nAgent 0: L L", 4, 1, "other moves here"),
    "later lists": ('[["UP"], ["UP"]]\n[["UP"], ["UP"], ["UP"]]', 2, 1, "lists of moves behind"),
    "lists behind rows": ('Agent 0: R R\nAgent 1: L\n[["UP"], ["UP"], ["UP"]]', 3, 1, "moves go on in this line"),
    "steps or answers": ("Agent 0: R\nAgent 1: L\nor\nAgent 0: U\nAgent 1: L", 4, 1, "several plans, or steps"),
    "a missing step": (
        "Step 1: Agent 0: R, Agent 1: L\nStep 3: Agent 0: R, Agent 1: L",
        2,
        9,
        "several plans, or steps",
    ),
    "a step that is none": (
        "Step 1: Agent 0: R, Agent 1: L\nStep 2: Agent 0: R, Agent 1: ?",
        1,
        9,
        "several plans, or steps",
    ),
    "moves in the next line": ("Agent 0: RIGHT RIGHT\n  UP UP\nAgent 1: UP", 2, 3, "moves go on in this line"),
    "a numbered line that is none": (
        "Agent 0:\n1. UP\n2. JUMP\n3. UP\nAgent 1: UP",
        3,
        1,
        "this line of the list is not a move",
    ),
    "a gap in the numbers": ("Agent 0:\n1. UP\n3. UP\nAgent 1: UP", 3, 4, "numbered 1, 3"),
    "moves after a full stop": ("Agent 0: UP. Then it goes RIGHT\nAgent 1: UP", 1, 27, "behind the end of the list"),
    "moves behind the bracket": ("Agent 0: [UP] RIGHT\nAgent 1: UP", 1, 15, "behind the list's bracket"),
    "bracketed moves": ("Agent 0: UP (RIGHT) UP\nAgent 1: UP", 1, 13, "may or may not belong"),
    "too often": ("Agent 0: UP x99999\nAgent 1: UP", 1, 13, "more than 10000 moves"),
    "a number in brackets": ("Agent 0: UP (2), DOWN\nAgent 1: UP", 1, 13, "may change the moves before it"),
    "a count in brackets": ("Agent 0: UP (2 times)\nAgent 1: UP", 1, 13, "may change the moves before it"),
    "another count in brackets": ("Agent 0: UP (3 steps)\nAgent 1: UP", 1, 13, "may change the moves before it"),
    "twice": ("Agent 0: UP (repeat twice)\nAgent 1: UP", 1, 13, "may change the moves before it"),
    "a choice in brackets": ("Agent 0: UP (or DOWN)\nAgent 1: UP", 1, 13, "may change the moves before it"),
    "a correction in brackets": ("Agent 0: UP (correction: DOWN UP)\nAgent 1: UP", 1, 13, "may change the moves"),
    "a repeated bracket": ("Agent 0: (UP, DOWN) x2\nAgent 1: UP", 1, 21, "what is in brackets is repeated"),
    "a repeated list": ("Agent 0: [UP] * 3\nAgent 1: [UP]", 1, 15, "a list is repeated"),
    "a diagonal": ("Agent 0: UP-LEFT\nAgent 1: UP", 1, 10, "may be both, or one of them"),
    "this or that": ("Agent 0: UP/LEFT, UP\nAgent 1: UP", 1, 10, "may be both, or one of them"),
    "a diagonal in letters": ("Agent 0: N NE\nAgent 1: S", 1, 12, "'NE' is not a move"),
    "an empty string": ('{"agent_0": ["UP", ""], "agent_1": ["UP"]}', 1, 20, "an empty string is not a move"),
    "an empty string among lists": ('[["UP", "", "UP"], ["UP"]]', 1, 20, "lists of moves: 1, agents: 2"),
    "an empty cell of a table of steps": ("| 1 | UP | UP |\n| 2 | UP | |", 1, 1, "rows of moves: 1, agents: 2"),
    "phases": ("Phase 1:\nAgent 0: U U\nAgent 1: L L\nPhase 2:\nAgent 0: R\nAgent 1: L", 5, 1, "may go on from those"),
    "a sequel": ("Agent 0: U U\nAgent 1: L L\n\nAnd then:\nAgent 0: R\nAgent 1: L", 5, 1, "may go on from those"),
    "options": ("A:\nAgent 0: U U\nAgent 1: L L\nOption B:\nAgent 0: R\nAgent 1: L", 5, 1, "or replace them"),
    "repeats nothing": ("Agent 0: UP x0\nAgent 1: UP", 1, 13, "repeats nothing"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name):
    reply, line, column, why = REFUSED[name]
    refusal = mfl.parse_plan(reply, 2)
    assert isinstance(refusal, ParseError)
    assert why in refusal.why
    assert (refusal.line, refusal.column) == (line, column)


def test_a_refusal_quotes_what_stands_there():
    assert str(mfl.parse_plan("Well:\nAgent 0: RIGHT JUMP", 1)) == (
        "line 2, column 16, at 'JUMP': 'JUMP' is not a move; the moves are LEFT, DOWN, RIGHT, UP and WAIT"
    )


@given(st.integers(1, 8).flatmap(plans))
@settings(max_examples=200)
def test_what_is_formatted_is_read_back(plan):
    assert mfl.parse_plan(mfl.format_plan(plan), len(plan)) == plan


@given(st.text(max_size=400), st.integers(1, 4))
@settings(max_examples=300)
def test_any_text_is_read_or_refused(reply, agents):
    replies.raise_unless_sound(reply, mfl.parse_plan(reply, agents), agents)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1_000, pytest.param(5_000, marks=pytest.mark.prove)])
def test_thousands_of_replies(count):
    outcome = replies.run(count, seed=7)
    assert outcome["outcomes"]["rightly written: read"] > count / 5
    assert "rightly written: refused" not in outcome["outcomes"]
    assert outcome["outcomes"]["soup: refused"] > count / 10


@pytest.mark.parametrize(
    "mountain", ["x" * 10_000_000, "[" * 10_000_000, "Agent 0: R " * 900_000, "<think>" * 1_400_000]
)
def test_ten_megabytes_are_refused_at_once(mountain):
    began = time.process_time()
    assert isinstance(mfl.parse_plan(mountain, 1), ParseError)
    assert time.process_time() - began < 1.0


def test_long_thoughts_are_no_hindrance():
    assert mfl.parse_plan("<think>" + "Agent 0: hm. " * 70_000 + "</think>Agent 0: UP", 1) == plan_of("U")


@pytest.mark.parametrize(
    ("reply", "moves"),
    [
        ("Agent 0: RIGHT\nAgent 1: WAIT", [2, 4]),
        ("RIGHT WAIT", [2, 4]),
        ('["RIGHT", "WAIT"]', [2, 4]),
        ("Agent 0: RIGHT\nAgent 1: WAIT\nor Agent 1: UP", None),
        ("I move.\n\nRIGHT, WAIT", [2, 4]),
        ('{"agent_0": "RIGHT", "agent_1": "WAIT"}', [2, 4]),
        ("<think>LEFT LEFT</think>RIGHT\nAgent", None),
        ("Agent 0: RIGHT RIGHT\nAgent 1: WAIT", None),
        ("Agent 0: RIGHT", None),
        ("RIGHT", None),
        ("RIGHT WAIT UP", None),
        ("", None),
    ],
)
def test_the_moves_of_one_turn(reply, moves):
    read = parse_moves(reply, 2)
    assert isinstance(read, ParseError) if moves is None else read == moves


def test_no_agents():
    with pytest.raises(LakeError, match="num_agents=0"):
        mfl.parse_plan("Agent 0: UP", 0)


def test_one_agents_bare_single_move_is_an_answer():
    """Only for several agents could a row of moves be an agent or a step; one agent's row is its plan."""
    assert mfl.parse_plan("RIGHT", 1) == [[mfl.Action.RIGHT]]
    assert mfl.parse_plan("I go\nUP", 1) == [[mfl.Action.UP]]
    assert parse_moves("RIGHT", 1) == [mfl.Action.RIGHT]
    assert isinstance(mfl.parse_plan("RIGHT UP\nUP RIGHT", 2), ParseError)


@pytest.mark.parametrize(
    ("behind", "said"),
    [
        ("UP UP UP", "rows of moves: 1, agents: 2"),
        ("UP\nDOWN\nLEFT", "rows of moves: 3"),
        ("UP UP\nDOWN DOWN", "an agent or a step"),
    ],
)
def test_rows_alone_behind_a_complete_answer_are_the_answer_or_an_error(behind, said):
    found = mfl.parse_plan(f'[["RIGHT", "DOWN"], ["LEFT"]]\n\n{behind}', 2)
    assert isinstance(found, ParseError)
    assert said in found.why


def test_behind_a_complete_answer_one_list_is_a_remark_and_two_are_another_answer():
    answer = "Agent 0: [RIGHT, UP]\nAgent 1: [LEFT]\n"
    assert mfl.parse_plan(answer + "Not [UP, UP].", 2) == plan_of("RU", "L")
    refused = mfl.parse_plan(answer + "Or [[UP], [UP], [UP]].", 2)
    assert isinstance(refused, ParseError)
    assert "lists of moves behind the complete answer: 3, agents: 2" in refused.why
