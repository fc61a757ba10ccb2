"""The joint move against the rules read aloud: a second implementation with sets and dictionaries, and its symmetries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mapf_frozenlake import Event, LakeError, joint_move
from mapf_frozenlake.types import DELTAS

LEFT, DOWN, RIGHT, UP, WAIT = range(5)
Cell = tuple[int, int]


def by_the_book(holes: np.ndarray, positions: list[Cell], actions: list[int]) -> tuple[list[Cell], list[Event]]:
    """Simultaneous rounds, word for word: shares and exchanges are found on all targets at once, then all are sent back."""
    events = [Event.NONE] * len(positions)
    targets = []
    for agent, ((row, col), action) in enumerate(zip(positions, actions)):
        there = (row + int(DELTAS[action][0]), col + int(DELTAS[action][1]))
        if not (0 <= there[0] < holes.shape[0] and 0 <= there[1] < holes.shape[1]):
            there, events[agent] = (row, col), Event.OFF_BOARD
        targets.append(there)
    first_round = True
    while True:
        clashes: dict[int, Event] = {}
        for a, target in enumerate(targets):
            if target == positions[a]:
                continue
            others = [b for b in range(len(targets)) if b != a]
            if any(targets[b] == target for b in others):
                clashes[a] = Event.VERTEX
            if any(targets[b] == positions[a] and positions[b] == target for b in others):
                clashes[a] = Event.SWAP
        if not clashes:
            break
        for a, event in clashes.items():
            targets[a] = positions[a]
            events[a] = event if first_round else Event.BLOCKED
        first_round = False
    for a, target in enumerate(targets):
        if holes[target]:
            events[a] = Event.HOLE
    return targets, events


@st.composite
def situations(draw: st.DrawFn) -> tuple[np.ndarray, list[Cell], list[int]]:
    height, width = draw(st.integers(2, 32)), draw(st.integers(2, 32))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    crowd = draw(st.integers(1, min(64, height * width)))
    holes = rng.random((height, width)) < draw(st.floats(0, 0.6))
    cells = [divmod(int(cell), width) for cell in rng.permutation(height * width)[:crowd]]
    return holes, cells, rng.integers(0, 5, crowd).tolist()


@settings(max_examples=400)
@given(situations())
def test_moves_as_the_rules_say(situation: tuple[np.ndarray, list[Cell], list[int]]) -> None:
    holes, positions, actions = situation
    after, events = joint_move(holes, np.array(positions), np.array(actions))
    expected_after, expected_events = by_the_book(holes, positions, actions)
    assert [tuple(cell) for cell in after.tolist()] == expected_after
    assert events.tolist() == expected_events


@settings(max_examples=200)
@given(situations())
def test_nobody_shares_or_exchanges(situation: tuple[np.ndarray, list[Cell], list[int]]) -> None:
    holes, positions, actions = situation
    after = [tuple(cell) for cell in joint_move(holes, np.array(positions), np.array(actions))[0].tolist()]
    assert len(set(after)) == len(after)
    moved = {(was, now) for was, now in zip(positions, after) if was != now}
    assert not any((now, was) in moved for was, now in moved)


@settings(max_examples=200)
@given(situations(), st.integers(0, 2**63 - 1), st.floats(0, 1), st.randoms())
def test_relabelling_agents_relabels_the_outcome(situation, key: int, ahead: float, random) -> None:
    holes, positions, actions = situation
    order = list(range(len(positions)))
    random.shuffle(order)
    cells, wanted = np.array(positions), np.array(actions)
    after, events = joint_move(holes, cells, wanted, key=key, step=3, ahead=ahead)
    after_relabelled, events_relabelled = joint_move(holes, cells[order], wanted[order], key=key, step=3, ahead=ahead)
    assert (after_relabelled == after[order]).all()
    assert (events_relabelled == events[order]).all()


ICE = np.zeros((3, 4), bool)


@pytest.mark.parametrize(
    ("positions", "actions", "after", "events"),
    [
        # following into a cell that is vacated
        ([(0, 0), (0, 1)], [RIGHT, RIGHT], [(0, 1), (0, 2)], [0, 0]),
        # a rotation of four
        ([(0, 0), (0, 1), (1, 1), (1, 0)], [RIGHT, DOWN, LEFT, UP], [(0, 1), (1, 1), (1, 0), (0, 0)], [0, 0, 0, 0]),
        # two want one cell
        ([(0, 0), (0, 2)], [RIGHT, LEFT], [(0, 0), (0, 2)], [Event.VERTEX, Event.VERTEX]),
        # an exchange
        ([(0, 0), (0, 1)], [RIGHT, LEFT], [(0, 0), (0, 1)], [Event.SWAP, Event.SWAP]),
        # bumping into one who waits: the waiter is not at fault
        ([(0, 0), (0, 1)], [RIGHT, WAIT], [(0, 0), (0, 1)], [Event.VERTEX, Event.NONE]),
        # bumping into one who could not leave the board
        ([(0, 1), (0, 0)], [LEFT, LEFT], [(0, 1), (0, 0)], [Event.VERTEX, Event.OFF_BOARD]),
        # a follower of a party to a conflict is blocked, no fault of its own
        ([(0, 0), (0, 1), (0, 3)], [RIGHT, RIGHT, LEFT], [(0, 0), (0, 1), (0, 3)], [Event.BLOCKED, Event.VERTEX, Event.VERTEX]),
        # an exchange outranks a shared target
        ([(0, 0), (0, 1), (0, 2)], [RIGHT, LEFT, LEFT], [(0, 0), (0, 1), (0, 2)], [Event.SWAP, Event.SWAP, Event.VERTEX]),
    ],
)  # fmt: skip
def test_situations(positions, actions, after, events) -> None:
    got_after, got_events = joint_move(ICE, np.array(positions), np.array(actions))
    assert got_after.tolist() == [list(cell) for cell in after]
    assert got_events.tolist() == [int(event) for event in events]


def test_a_hole_takes_who_enters_and_none_who_was_sent_back() -> None:
    holes = np.zeros((1, 3), bool)
    holes[0, 1] = True
    after, events = joint_move(holes, np.array([(0, 0), (0, 2)]), np.array([RIGHT, WAIT]))
    assert (after[0].tolist(), events.tolist()) == ([0, 1], [Event.HOLE, Event.NONE])
    after, events = joint_move(holes, np.array([(0, 0), (0, 2)]), np.array([RIGHT, LEFT]))
    assert (after[:, 1].tolist(), events.tolist()) == ([0, 2], [Event.VERTEX, Event.VERTEX])


def test_who_waits_never_slips() -> None:
    for step in range(200):
        after, events = joint_move(ICE, np.array([(1, 1)]), np.array([WAIT]), key=5, step=step, ahead=0.0)
        assert after.tolist() == [[1, 1]]
        assert events[0] == Event.NONE


@pytest.mark.parametrize(
    ("positions", "actions", "says"),
    [
        ([(9, 9)], [RIGHT], r"agent 0 at \(9, 9\) with action 2: on a 3×4 board every agent needs a cell of its own"),
        ([(0, 0), (-1, 0)], [WAIT, WAIT], r"agent 1 at \(-1, 0\)"),
        ([(1, 1), (1, 1)], [LEFT, RIGHT], r"agent 1 at \(1, 1\)"),
        ([(0, 0)], [7], "with action 7: .*an action from 0 to 4"),
        ([(0, 0), (1, 1)], [LEFT], r"positions \(2, 2\), actions \(1,\): give"),
    ],
)
def test_what_is_no_situation_is_refused(positions, actions, says: str) -> None:
    with pytest.raises(LakeError, match=says):
        joint_move(ICE, positions, actions)
