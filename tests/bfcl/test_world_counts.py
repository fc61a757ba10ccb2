"""What the world of tool use counts: what was drawn, how it was played, how many are asked at once."""

from __future__ import annotations

from statistics import fmean

import pytest

from envtuning.worlds.bfcl.config import BFCLConfig
from envtuning.worlds.bfcl.tasks import find_task
from envtuning.worlds.bfcl.tools import _as_text, is_error
from envtuning.worlds.bfcl.world import BFCLCases
from envtuning.worlds.episodes import Episode
from envtuning.worlds.registry import make_world


@pytest.fixture(scope="module")
def world(v4):
    return make_world("tools")


def test_what_was_drawn_is_told_by_split(world, v4):
    ids = ("multi_turn_base_0", "multi_turn_base_60", "multi_turn_miss_func_0")
    first, second, third = (find_task(v4, one) for one in ids)
    found = world.drawn(BFCLConfig(), BFCLCases(ids))
    assert set(found) == {"base", "miss_func"}
    base = found["base"]
    assert (base["share"], found["miss_func"]["share"]) == (0.667, 0.333)
    assert base["turns"] == pytest.approx(fmean([first.turns, second.turns]), abs=1e-3)
    assert base["calls"] == pytest.approx(fmean(sum(map(len, t.ground_truth)) for t in (first, second)), abs=1e-3)
    rates = {
        name: ((name in first.classes) + (name in second.classes)) / 2 for name in {*first.classes, *second.classes}
    }
    assert {name: base[name] for name in base.keys() - {"share", "turns", "calls"}} == rates
    assert list(base)[3:] == sorted(rates)
    assert found["miss_func"]["turns"] == third.turns


def test_behaviour_is_the_mean_over_the_episodes_that_were_played(world):
    def one(split, calls, trace=True):
        counts = {"calls": calls, "failed_calls": 1.0, "unreadable": 0.0, "guessed_turns": 2.0, "turns": 3.0}
        return Episode(0, split, None, {}, {}, {"counts": counts} if trace else None)

    found = world.behaviour(None, [one("base", 1.0), one("base", 1.0), one("base", 3.0), one("base", 9.0, False)])
    assert found == {
        "base": {"calls": 1.67, "failed_calls": 1.0, "unreadable": 0.0, "guessed_turns": 2.0, "turns": 3.0}
    }


def test_splits_in_use_have_their_part_of_the_data(world):
    slices = {"long_context": {"share": 0.75}, "base": {"share": 0.25}, "miss_func": {"share": 0.0}}
    found = world.slices(BFCLConfig(slices=slices))
    assert list(found.items()) == [("base", 0.25), ("long_context", 0.75)]


def test_64_conversations_are_asked_at_once_and_each_reply_is_a_step(world, v4):
    asked = []

    class Quiet:
        def reply(self, conversations, *, seed):
            asked.append(len(conversations))
            return ["That is all."] * len(conversations)

    cases = BFCLCases(tuple(f"multi_turn_base_{number}" for number in range(70)))
    episodes = world.play(Quiet(), cases, BFCLConfig(tool_style="none"), seed=0)
    assert max(asked) == 64
    assert asked.count(6) >= 1
    assert [one.case for one in episodes] == list(range(70))
    for one, task_id in zip(episodes, cases.ids, strict=True):
        turns = find_task(v4, task_id).turns
        assert one.cost == {"episodes": 1, "samples": 1, "env_steps": turns, "tokens": 0}
        assert one.trace["counts"]["turns"] == turns
        assert (one.trace["task"], one.trace["departures"], one.trace["hints_by"]) == (task_id, [], None)


@pytest.mark.parametrize(
    ("returned", "error"),
    [
        ({"error": "x"}, True), ({"errors": "x"}, False), ([{"error": "x"}], True), ([{"error": "x"}, 1], False),
        (["Error: x"], True), (["An Error: x"], False), ("Error: x", False), ([5], False), ([], False), (None, False),
    ],
)  # fmt: skip
def test_a_result_is_an_error_where_the_tool_says_so(returned, error):
    assert is_error(returned) is error


def test_results_are_printed_as_the_official_executor_prints_them():
    assert _as_text("as it is") == "as it is"
    assert _as_text({"a": True}) == '{"a": true}'
    assert _as_text({"a": 1j}) == "{'a': 1j}"
    assert _as_text([True]) == "[True]"
    assert _as_text(None) == "None"
