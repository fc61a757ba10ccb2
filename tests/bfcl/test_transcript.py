"""The kind of the first thing that went wrong, and how long its words may be."""

from types import SimpleNamespace

import pytest

from envtuning.worlds.bfcl.check import TurnCheck
from envtuning.worlds.bfcl.rewards import TurnRecord
from envtuning.worlds.bfcl.transcript import LONGEST_LINE, MOST_LINES, _short, failure_of

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
