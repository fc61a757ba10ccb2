"""Feedback as middleware: one signature for tool use and for the lakes; hints are shown and change nothing else."""

import gymnasium as gym
import numpy as np
import pytest

import mapf_frozenlake as mfl
from mapf_frozenlake import Action
from mapf_frozenlake.augmenter import PlanEvent, TurnEvent, augment

LAKE = "MAPFFrozenLakeText-v0"


class Listener:
    """An augmenter for any world: it knows what all events have."""

    def __init__(self, hint=None):
        self.events, self.hint = [], hint

    def __call__(self, event):
        assert isinstance(event.action, str)
        assert isinstance(event.result, str)
        self.events.append(event)
        return self.hint if event.error else None


def walk(env, replies, seed=0):
    """What was paid, how it ended and what was read, reply by reply."""
    said, _ = env.reset(seed=seed)
    heard, outcomes = [said], []
    for reply in replies:
        said, reward, terminated, truncated, info = env.step(reply)
        heard.append(said)
        outcomes.append((reward, terminated, truncated, info.get("valid"), info.get("progress")))
        if terminated or truncated:
            break
    return heard, outcomes


def random_moves(seed, steps=12):
    rng = np.random.default_rng(seed)
    lines = [f"Agent 0: {Action(a).name}\nAgent 1: {Action(b).name}" for a, b in rng.integers(0, 5, (steps, 2))]
    return ["?", *lines]


@pytest.mark.parametrize("seed", range(5))
def test_a_lake_s_hints_stand_beside_its_results_and_change_nothing_else(seed):
    listener = Listener(hint="Look out.")
    kwargs = {"mode": "turns", "size": 4, "num_agents": 2, "reward": "progress"}
    replies = random_moves(seed)
    plain, outcomes = walk(gym.make(LAKE, feedback=False, **kwargs), replies, seed)
    heard, same = walk(gym.make(LAKE, augmenter=listener, **kwargs), replies, seed)
    assert outcomes == same
    assert [event.action for event in listener.events] == replies[: len(outcomes)]
    assert [event.result for event in listener.events] == plain[1:]
    assert heard[1:] == [f"Look out.\n{e.result}" if e.error else e.result for e in listener.events]
    assert listener.events[0].error  # "?" cannot be read
    assert all(isinstance(event, TurnEvent) for event in listener.events)


def test_the_lake_s_own_augmenter_is_what_speaks_where_none_is_given():
    kwargs = {"mode": "turns", "size": 4, "num_agents": 2}
    replies = random_moves(3)
    listener = Listener()
    heard, _ = walk(gym.make(LAKE, **kwargs), replies)
    walk(gym.make(LAKE, augmenter=listener, **kwargs), replies)
    hints = [augment(event) for event in listener.events]
    assert any(hints)
    assert heard[1:] == [f"{hint}\n{e.result}" if hint else e.result for hint, e in zip(hints, listener.events)]
    assert [bool(hint) for hint in hints] == [event.error for event in listener.events]


def test_a_plan_s_hint_stands_in_for_the_bare_result():
    listener = Listener(hint="Look out.")
    env = gym.make(LAKE, augmenter=listener, size=3)
    env.reset(seed=0)
    assert env.step("nothing")[0] == "Look out."
    (event,) = listener.events
    assert isinstance(event, PlanEvent)
    assert (event.result, event.error) == ("The plan is not valid.", True)
    env.reset(seed=0)
    plan = mfl.format_plan(mfl.solve(env.unwrapped.instance).plan)
    assert env.step(plan)[0] == "The plan is valid."
    assert augment(listener.events[1]).startswith("Valid and optimal")


def test_feedback_that_is_switched_off_asks_no_augmenter():
    listener = Listener(hint="Look out.")
    env = gym.make(LAKE, augmenter=listener, feedback=False, size=3)
    env.reset(seed=0)
    assert env.step("nothing")[0] == "The plan is not valid."
    assert listener.events == []


def test_the_same_augmenter_serves_tool_use():
    from tests.bfcl.conftest import need

    need("v4")
    from envtuning.worlds.bfcl.env import BFCLMultiTurnEnv

    listener = Listener(hint="Look out.")
    env = BFCLMultiTurnEnv(split="base", augmenter=listener, tool_style="none")
    env.reset(options={"task": "multi_turn_base_0"})
    said, *_ = env.step("[cd(folder='nowhere'), pwd()]")
    failed, fine = listener.events
    assert (failed.action, failed.error, fine.error) == ("cd(folder='nowhere')", True, False)
    assert said == f"{failed.result}\nHint: Look out.\n{fine.result}"
