"""The kind of the first thing that went wrong, and how long its words may be."""

from types import SimpleNamespace

import pytest

from envtuning.worlds.bfcl.calls import Call, as_reply
from envtuning.worlds.bfcl.check import TurnCheck
from envtuning.worlds.bfcl.rewards import TurnRecord
from envtuning.worlds.bfcl.tasks import find_task
from envtuning.worlds.bfcl.transcript import LONGEST_LINE, MOST_LINES, _explanation, _short, failure_of, transcript

RIGHT = TurnCheck(True, True, True)


def turn(check=RIGHT, *, ended=True):
    return TurnRecord((("a()",),), 2, 0, 0, check, ended)


@pytest.mark.parametrize(
    ("records", "kind"),
    [
        ([turn(), turn(None), turn()], None),
        ([turn(), turn(ended=False)], "too_many_steps"),
        ([turn(TurnCheck(False, True, True)), turn(ended=False)], "said_nothing"),
        ([turn(TurnCheck(False, False, False))], "said_nothing"),
        ([turn(TurnCheck(True, False, True))], "wrong_state"),
        ([turn(TurnCheck(True, False, False))], "wrong_state"),
        ([turn(), turn(TurnCheck(True, True, False))], "missing_result"),
        ([turn(), turn(None)], "said_nothing"),
        ([], "said_nothing"),
    ],
)
def test_a_failure_is_named_by_the_first_turn_that_went_wrong(records, kind):
    assert failure_of(SimpleNamespace(records=records, task=SimpleNamespace(turns=3))) == kind


def test_a_picture_keeps_so_many_lines_of_its_beginning_and_end_and_so_much_of_each():
    whole = [f"line {number}" for number in range(MOST_LINES)]
    assert _short(whole) == whole
    longer = [*whole, "last", "very last"]
    half = MOST_LINES // 2
    assert _short(longer) == [*longer[:half], f"… {len(longer) - 2 * half} lines …", *longer[-half:]]
    assert _short(["x" * LONGEST_LINE]) == ["x" * LONGEST_LINE]
    assert _short(["x" * (LONGEST_LINE + 1)]) == ["x" * LONGEST_LINE + " …"]
    assert (LONGEST_LINE, MOST_LINES) == (300, 24)


@pytest.mark.parametrize(
    ("check", "own", "said"),
    [
        (TurnCheck(False, True, True), {}, "no call was made"),
        (TurnCheck(True, False, True), {"b": 2}, "the state differs in Box.b"),
        (TurnCheck(True, False, True), {"a": 2, "b": 2, "c": 2, "d": 2}, "the state differs in Box.a, Box.b, Box.c"),
        (TurnCheck(True, False, False), {"_e": 2}, "the state differs in what cannot be shown"),
        (TurnCheck(True, True, False), {}, "the states are right, but not every result was obtained"),
    ],
)
def test_an_explanation_says_what_was_wrong_and_what_is_called_but_no_values(check, own, said):
    truth = dict.fromkeys("abcd", 1) | {"_e": 1}
    talk = SimpleNamespace(
        records=[turn(), turn(check)],
        truth_instances=lambda: {"Box": SimpleNamespace(**truth)},
        toolbox=SimpleNamespace(instances={"Box": SimpleNamespace(**(truth | own))}),
    )
    task = SimpleNamespace(turns=3, plan=[[], [Call("cd", (), {"folder": "secret"}), Call("ls")]])
    assert _explanation(task, talk) == f"Turn 2 of 3: {said}. The ground truth calls cd, ls."


def test_a_turn_that_was_cut_off_is_told_though_nothing_in_it_was_wrong(v4):
    task = find_task(v4, "multi_turn_base_0")
    said, why = transcript(v4, task, [as_reply(task.ground_truth[0]), *["[pwd()]"] * v4.step_limit, "never said"], None)
    assert said.startswith("User: ")
    assert said.count("Agent: [pwd()]") > 5
    assert "never said" not in said
    assert why == "The episode ended before its last turn."


def test_hints_are_told_where_the_agent_had_them(v4):
    task = find_task(v4, "multi_turn_base_0")
    for hints, told in ((None, False), ({}, True)):
        said, _ = transcript(v4, task, ["[cd(folder='nowhere')]"], hints)
        assert ("  Hint: Check folder" in said) is told
        assert "  {" in said
