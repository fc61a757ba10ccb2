"""The judge against the rules written once more, plainly, and against what the environments say of the same moves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mapf_frozenlake as mfl
from mapf_frozenlake import Event, FailureKind, LakeError
from tests.oracles.brute_force import MOVES, is_ice, is_legal
from tests.text.lakes import DOWN, LEFT, RIGHT, UP, WAIT, instances_with_plans, lake

OPEN = ["...", "...", "..."]


def cells(array):
    return tuple((int(row), int(col)) for row, col in array)


def first_fault(instance, plan):
    """(step, kind) of the first step that breaks a rule; or None and where everybody stood after each step."""
    holes, now = instance.holes.tolist(), cells(instance.starts)
    history = [now]
    for step in range(max(map(len, plan))):
        wanted = tuple(
            (
                row + MOVES[line[step] if step < len(line) else WAIT][0],
                col + MOVES[line[step] if step < len(line) else WAIT][1],
            )
            for (row, col), line in zip(now, plan)
        )
        if not is_legal(holes, now, wanted):
            ice = [[False] * instance.width for _ in range(instance.height)]
            if not all(is_ice(ice, cell) for cell in wanted):
                return (step, FailureKind.ILLEGAL_MOVE), history
            return (step, FailureKind.HOLE if is_legal(ice, now, wanted) else FailureKind.CONFLICT), history
        now = wanted
        history.append(now)
    return None, history


@given(instances_with_plans())
@settings(max_examples=400)
def test_verdict_follows_from_the_rules(case):
    instance, plan = case
    verdict = mfl.judge(instance, plan)
    fault, history = first_fault(instance, plan)
    goals = cells(instance.goals)
    blameless = set(range(instance.num_agents)) - {fault.agent for fault in verdict.violations}
    assert verdict.score == sum(verdict.agents_on_goal[agent] for agent in blameless) / instance.num_agents
    assert (verdict.score == 1.0) == verdict.valid
    if fault is not None:
        assert not verdict.valid
        assert (verdict.violations[0].step, verdict.failure) == fault
        return
    assert verdict.violations == ()
    assert verdict.valid == (history[-1] == goals)
    assert verdict.failure == (None if verdict.valid else FailureKind.GOAL_MISSED)
    assert verdict.agents_on_goal == tuple(here == goal for here, goal in zip(history[-1], goals))
    if verdict.valid:
        settled = [
            min(t for t in range(len(history)) if all(later[agent] == goals[agent] for later in history[t:]))
            for agent in range(instance.num_agents)
        ]
        assert (verdict.makespan, verdict.sum_of_costs) == (max(settled), sum(settled))
    else:
        assert verdict.makespan is None
        assert verdict.sum_of_costs is None


@given(instances_with_plans(), st.randoms(use_true_random=False))
@settings(max_examples=150)
def test_numbering_the_agents_differently_changes_nothing_but_their_numbers(case, random):
    instance, plan = case
    order = list(range(instance.num_agents))
    random.shuffle(order)
    other = mfl.Instance(holes=instance.holes, starts=instance.starts[order], goals=instance.goals[order])
    before, after = mfl.judge(instance, plan), mfl.judge(other, [plan[agent] for agent in order])
    assert (before.valid, before.failure, before.makespan, before.sum_of_costs) == (
        after.valid, after.failure, after.makespan, after.sum_of_costs,
    )  # fmt: skip

    def renamed(violations, name):
        return {
            (name(fault.agent), fault.step, fault.cell, fault.event, frozenset(map(name, fault.others)))
            for fault in violations
        }

    assert renamed(before.violations, lambda agent: agent) == renamed(after.violations, order.__getitem__)


@given(instances_with_plans(), st.integers(1, 3))
@settings(max_examples=80)
def test_waits_at_the_end_change_nothing(case, waits):
    instance, plan = case
    verdict = mfl.judge(instance, plan)
    longest = max(map(len, plan))
    padded = mfl.judge(instance, [[*line, *[WAIT] * (longest - len(line) + waits)] for line in plan])
    assert verdict == padded


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_the_environment_says_the_same_of_the_same_moves(seed):
    rng = np.random.default_rng(seed)
    config = mfl.LakeConfig.single(int(rng.integers(3, 6)), num_agents=2, hole_ratio=0.1, horizon=12)
    batch = mfl.LakeBatch(config, 1, observation="compact", autoreset="disabled")
    instance = mfl.generate(config, n=1, seed=seed)[0]
    batch.reset(instances=instance)
    taken, over = [], False
    while not over:
        actions = rng.integers(0, 5, (1, 2))
        taken.append(actions[0])
        result = batch.step(actions)
        over = bool(result.terminated[0] or result.truncated[0])
    verdict = mfl.judge(instance, np.array(taken).T.tolist())
    assert verdict.valid == bool(batch.valid[0])
    assert all(verdict.agents_on_goal) == bool(batch.success[0])
    fell = any(fault.event is Event.HOLE for fault in verdict.violations)
    assert bool(result.terminated[0]) == (fell or bool(batch.success[0]))


def test_goes_on_after_a_violation_as_block():
    instance = lake(OPEN, [(0, 0)], [(2, 0)])
    verdict = mfl.judge(instance, [[UP, LEFT, DOWN, DOWN]])
    assert [fault.event for fault in verdict.violations] == [Event.OFF_BOARD, Event.OFF_BOARD]
    assert verdict.agents_on_goal == (True,)
    assert not verdict.valid
    assert verdict.makespan == 4
    assert verdict.violations[0].target == (-1, 0)


def test_a_fall_stops_the_play():
    instance = lake([".#", ".."], [(0, 0)], [(1, 1)])
    verdict = mfl.judge(instance, [[RIGHT, DOWN, UP, UP, UP]])
    assert [(fault.event, fault.step) for fault in verdict.violations] == [(Event.HOLE, 0)]


def test_success_does_not_stop_the_play():
    instance = lake(OPEN, [(0, 0)], [(0, 1)])
    verdict = mfl.judge(instance, [[RIGHT, DOWN]])
    assert verdict.failure is FailureKind.GOAL_MISSED
    again = mfl.judge(instance, [[RIGHT, DOWN, UP]])
    assert (again.valid, again.makespan) == (True, 3)


def test_no_horizon():
    instance = lake(OPEN, [(0, 0)], [(0, 1)])
    verdict = mfl.judge(instance, [[WAIT] * 5000 + [RIGHT]])
    assert (verdict.valid, verdict.makespan) == (True, 5001)


def test_others_are_named():
    three_to_one = mfl.judge(lake(OPEN, [(0, 1), (1, 0), (1, 2)], [(2, 0), (2, 1), (2, 2)]), [[DOWN], [RIGHT], [LEFT]])
    assert [(fault.agent, fault.others) for fault in three_to_one.violations] == [(0, (1, 2)), (1, (0, 2)), (2, (0, 1))]
    swap = mfl.judge(lake(OPEN, [(0, 0), (0, 1)], [(2, 0), (2, 1)]), [[RIGHT], [LEFT]])
    assert [(fault.event, fault.others) for fault in swap.violations] == [(Event.SWAP, (1,)), (Event.SWAP, (0,))]
    bumped = mfl.judge(lake(OPEN, [(0, 0), (0, 1)], [(2, 0), (2, 1)]), [[RIGHT], [WAIT]])
    assert [(fault.agent, fault.event, fault.others) for fault in bumped.violations] == [(0, Event.VERTEX, (1,))]


def test_who_is_blocked_is_not_at_fault():
    instance = lake(OPEN, [(0, 0), (0, 1), (0, 2)], [(2, 0), (2, 1), (2, 2)])
    verdict = mfl.judge(instance, [[RIGHT], [RIGHT], [WAIT]])
    assert [fault.agent for fault in verdict.violations] == [1]


def test_rotation_is_allowed():
    instance = lake(["..", ".."], [(0, 0), (0, 1)], [(1, 1), (1, 0)])
    assert mfl.judge(instance, [[RIGHT, DOWN], [DOWN, LEFT]]).valid


def test_gaps():
    plan = [[RIGHT, WAIT, DOWN]]
    unknown = mfl.judge(lake(OPEN, [(0, 0)], [(1, 1)]), plan)
    assert (unknown.optimal, unknown.makespan_gap, unknown.sum_of_costs_gap) == (None, None, None)
    certified = mfl.judge(lake(OPEN, [(0, 0)], [(1, 1)], makespan=2), plan)
    assert (certified.optimal, certified.makespan_gap, certified.sum_of_costs_gap) == (False, 1, None)
    asked = mfl.judge(lake(OPEN, [(0, 0)], [(1, 1)]), plan, optima=("makespan", "sum_of_costs"))
    assert (asked.optimal, asked.makespan_gap, asked.sum_of_costs_gap) == (False, 1, 1)
    assert mfl.judge(lake(OPEN, [(0, 0)], [(1, 1)]), [[RIGHT, DOWN]], optima=("makespan",)).optimal


def test_what_could_not_be_read_fails_as_parse_error():
    instance = lake(OPEN, [(0, 0), (0, 2)], [(1, 1), (2, 2)])
    verdict = mfl.judge(instance, mfl.parse_plan("no", 2))
    assert (verdict.valid, verdict.failure, verdict.optimal) == (False, FailureKind.PARSE_ERROR, False)


def test_batch_equals_one_by_one():
    instance = lake(OPEN, [(0, 0)], [(1, 1)])
    plans = [[[RIGHT, DOWN]], [[UP]], mfl.parse_plan("?", 1)]
    assert mfl.judge_batch([instance] * 3, plans) == [mfl.judge(instance, plan) for plan in plans]


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ([[RIGHT]], "a plan of 1 action lists for 2 agents"),
        ([[RIGHT], [5]], "agent 1's action 5 in step 0: actions are 0 to 4"),
        ([[RIGHT], [-1]], "agent 1's action -1"),
    ],
)
def test_what_is_no_plan_is_an_error(plan, message):
    with pytest.raises(LakeError, match=message):
        mfl.judge(lake(OPEN, [(0, 0), (0, 2)], [(1, 1), (2, 2)]), plan)


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (None, "a plan of type NoneType: give one list of actions for each of 1 agents"),
        ("RIGHT", "a plan of type str"),
        ([RIGHT], "agent 0's actions are of type int: give a list of 0 to 4"),
        ([["RIGHT"]], "agent 0's action 'RIGHT' in step 0: actions are 0 to 4"),
        ([[RIGHT, 1.5]], "agent 0's action 1.5 in step 1: actions are 0 to 4"),
    ],
)
def test_what_is_no_plan_is_refused(plan, why):
    with pytest.raises(LakeError, match=why):
        mfl.judge(lake(OPEN, [(0, 0)], [(0, 1)]), plan)


def test_unknown_optima_are_refused():
    with pytest.raises(LakeError, match="optima=\\('length',\\): name 'makespan' and 'sum_of_costs'"):
        mfl.judge(lake(OPEN, [(0, 0)], [(0, 1)]), [[RIGHT]], optima=("length",))
