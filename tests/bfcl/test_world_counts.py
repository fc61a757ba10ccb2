"""What the world of tool use counts: what was drawn, how it was played, how many are asked at once."""

from __future__ import annotations

from statistics import fmean

import pytest

from envtuning.worlds.bfcl import env as envs
from envtuning.worlds.bfcl import world as worlds
from envtuning.worlds.bfcl.config import BFCLConfig
from envtuning.worlds.bfcl.tasks import find_task
from envtuning.worlds.bfcl.tools import _as_text, is_error
from envtuning.worlds.bfcl.world import BFCLCases
from envtuning.worlds.episodes import Episode
from envtuning.worlds.registry import make_world
from envtuning.worlds.world import InfeasibleConfig, TooFewCases


@pytest.fixture(scope="module")
def world(v4):
    return make_world("tools")


def test_what_was_drawn_is_told_by_split(world, v4):
    ids = ("multi_turn_base_0", "multi_turn_base_1", "multi_turn_base_60", "multi_turn_miss_func_0")
    *three, last = (find_task(v4, one) for one in ids)
    found = world.drawn(BFCLConfig(), BFCLCases(ids))
    assert set(found) == {"base", "miss_func"}
    base = found["base"]
    assert (base["share"], found["miss_func"]["share"]) == (0.75, 0.25)
    assert base["turns"] == round(fmean(task.turns for task in three), 3)
    assert base["calls"] == round(fmean(sum(map(len, task.ground_truth)) for task in three), 3)
    classes = {name for task in three for name in task.classes}
    rates = {name: round(fmean(name in task.classes for task in three), 3) for name in classes}
    assert len(set(rates.values())) > 1
    assert {name: base[name] for name in base.keys() - {"share", "turns", "calls"}} == rates
    assert list(base)[3:] == sorted(rates)
    assert found["miss_func"]["turns"] == last.turns


def test_behaviour_is_the_mean_over_the_episodes_that_were_played(world):
    def one(split, calls, trace=True):
        counts = {"calls": calls, "failed_calls": 1.0, "unreadable": 0.0, "guessed_turns": 2.0, "turns": 3.0}
        return Episode(0, split, None, {}, {}, {"counts": counts} if trace else None)

    found = world.behaviour(None, [one("base", 1.0), one("base", 1.0), one("base", 3.0), one("base", 9.0, False)])
    assert found == {
        "base": {"calls": 1.67, "failed_calls": 1.0, "unreadable": 0.0, "guessed_turns": 2.0, "turns": 3.0}
    }


def test_splits_in_use_have_their_part_of_the_data(world):
    slices = {"long_context": {"share": 0.375}, "base": {"share": 0.125}, "miss_func": {"share": 0.0}}
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


def test_a_policy_is_asked_with_the_seed_of_the_play_and_one_more_for_each_reply(world):
    seeds = []

    class Quiet:
        def reply(self, conversations, *, seed):
            seeds.append(seed)
            return ["That is all."] * len(conversations)

    (episode,) = world.play(Quiet(), BFCLCases(("multi_turn_base_0",)), BFCLConfig(tool_style="none"), seed=7)
    assert seeds == [7 + turn for turn in range(episode.cost["env_steps"])]


def test_the_hints_that_were_shown_are_kept_with_the_episode_and_shown_again_where_it_is_explained(world):
    key = "cd: cd: {}: No such file or directory"
    cases = BFCLCases(("multi_turn_base_0",))

    def lost(text):
        return "[cd(folder='nowhere')]" if "nowhere" not in text else "That is all."

    for hints, told in (({}, "Hint: Check folder"), ({key: "Go step by step."}, "Hint: Go step by step.")):
        config = BFCLConfig(feedback="augmented", hints=hints, tool_style="none")
        (episode,) = world.play(lost, cases, config, seed=0)
        assert episode.trace["hints_by"] == hints
        assert told in world.explain(cases, episode).picture
    (plain,) = world.play(lost, cases, BFCLConfig(hints={key: "Go."}, tool_style="none"), seed=0)
    assert plain.trace["hints_by"] is None
    assert "Hint:" not in world.explain(cases, plain).picture


def test_what_a_policy_raised_is_what_its_case_is_explained_by(world):
    def broken(text):
        raise RuntimeError("no weights")

    cases = BFCLCases(("multi_turn_base_0",))
    (episode,) = world.play(broken, cases, BFCLConfig(), seed=0)
    case = world.explain(cases, episode)
    assert (case.kind, case.explanation) == ("policy_error", "RuntimeError: no weights")
    assert (case.slice, case.case_id) == ("base", "multi_turn_base_0")


def test_a_training_environment_goes_by_its_seed_and_its_config(world):
    config = BFCLConfig(reward="syntax", tool_style="none")
    env, same, other = (world.make_env(config, **seed) for seed in ({}, {"seed": 0}, {"seed": 1}))
    dealt = [[one.next_task().id for _ in range(9)] for one in (env, same, other)]
    assert dealt[0] == dealt[1] != dealt[2]
    first = env.reset(seed=1)[1]["task"]
    assert [first, *(env.next_task().id for _ in range(8))] == dealt[2]
    assert env.np_random_seed == 1
    assert env.reset(options={"task": "multi_turn_miss_func_3"})[1]["task"] == "multi_turn_miss_func_3"
    with pytest.raises(ValueError, match="are not known"):
        env.reset(options={"turn": 1})
    assert (env.settings["reward"], env.settings["tool_style"]) == ("syntax", "none")
    env.set_config(BFCLConfig(slices={"miss_func": {}}, feedback="augmented"))
    assert (env.settings["reward"], env.settings["tool_style"]) == ("progress", "json")
    assert env.settings["augmenter"] is not None
    assert env.reset()[1]["slice"] == "miss_func"


def test_a_world_of_another_version_makes_environments_of_that_version(v4, monkeypatch):
    asked = []

    def load(version, path):
        asked.append((version, path))
        return v4

    monkeypatch.setattr(worlds, "load", load)
    monkeypatch.setattr(envs, "load", load)
    world = make_world("tools", version="v3-paper", path="there")
    world.make_env(BFCLConfig())
    world.play(lambda text: "That is all.", BFCLCases(("multi_turn_base_0",)), BFCLConfig(), seed=0)
    assert set(asked) == {("v3-paper", "there")}


def test_a_held_out_tool_class_is_tested_on_and_not_trained_on(v4):
    world = make_world("tools", held_out="MathAPI")
    test = world.draw(BFCLConfig(), 5, seed=0, purpose="test", exclude=())
    assert any("MathAPI" in find_task(v4, one).classes for one in test.ids)
    probe = world.draw(BFCLConfig(), 20, seed=0, purpose="probe", exclude=())
    assert len(probe) == 80
    assert not any("MathAPI" in find_task(v4, one).classes for one in probe.ids)


def test_a_set_may_take_every_task_that_there_is_and_a_probe_none_that_is_excluded(world):
    base = BFCLConfig(slices={"base": {}})
    assert len(world.draw(base, 100, seed=0, purpose="test", exclude=())) == 100
    with pytest.raises(
        TooFewCases, match="101 tasks of base are needed to test on, but the test scenarios have 100: ask for"
    ):
        world.draw(base, 101, seed=0, purpose="test", exclude=())
    some = world.draw(base, 40, seed=1, purpose="probe", exclude=())
    again, other = (world.draw(base, 40, seed=seed, purpose="probe", exclude=()) for seed in (1, 2))
    assert some == again != other
    rest = world.draw(base, 40, seed=1, purpose="probe", exclude=(some,))
    assert not rest.fingerprints() & some.fingerprints()
    everything = BFCLCases(tuple(f"multi_turn_base_{number}" for number in range(200)))
    with pytest.raises(InfeasibleConfig, match="no training task has at most 8 turns"):
        world.draw(base, 1, seed=0, purpose="probe", exclude=(everything,))


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
