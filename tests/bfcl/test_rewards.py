"""What a turn and an episode are worth, by their formulas."""

import pytest

from envtuning.worlds.bfcl.check import TurnCheck
from envtuning.worlds.bfcl.rewards import TurnRecord, progress, success, syntax, turn_progress, turn_syntax

RIGHT, WRONG = TurnCheck(True, True, True), TurnCheck(True, False, True)


def turn(check=RIGHT, *, steps=(("a()", "b()"), ("c()",)), replies=4, unreadable=0, failed=0, ended=True):
    return TurnRecord(steps, replies, unreadable, failed, check, ended)


def test_calls_are_those_of_all_steps():
    assert turn().calls == 3
    assert turn(steps=()).calls == 0


@pytest.mark.parametrize(
    ("one", "progressed", "solves"),
    [(turn(), 1, True), (turn(WRONG), 0, False), (turn(None), 0, True), (turn(ended=False), 0, False), (turn(None, ended=False), 0, False)],
)  # fmt: skip
def test_a_turn_counts_when_it_was_ended_and_right_and_without_ground_truth_it_does_no_harm(one, progressed, solves):
    assert turn_progress(one) == progressed
    assert success([one], 1) is solves
    assert success([turn(), one], 2) is solves
    assert not success([one], 2)


def test_syntax_is_the_mean_of_what_could_be_read_and_what_ran():
    assert turn_syntax(turn()) == 1
    assert turn_syntax(turn(unreadable=1)) == pytest.approx((3 / 4 + 1) / 2)
    assert turn_syntax(turn(failed=2)) == pytest.approx((1 + 1 / 3) / 2)
    assert turn_syntax(turn(WRONG, unreadable=4, failed=3)) == 0
    assert turn_syntax(turn(steps=())) == 0  # silence
    assert turn_syntax(turn(None)) == 0


def test_episodes_are_paid_over_all_turns_that_could_be_right_reached_or_not():
    assert progress([turn(), turn(WRONG), turn(None)], 4) == 1 / 4
    assert syntax([turn(), turn(failed=3), turn(None)], 4) == (1 + 0.5) / 4
