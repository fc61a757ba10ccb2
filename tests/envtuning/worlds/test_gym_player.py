"""What an episode of a Gymnasium world is, field by field: on an environment whose seed says how it goes."""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from pydantic import BaseModel, Field

from envtuning.worlds.gym_cases import HELD_OUT_SEEDS, TRAINING_SEEDS, Case, GymCases, apportioned, digest, draw_cases
from envtuning.worlds.gym_player import GymEpisode, _plain
from envtuning.worlds.gym_world import GymWorld
from envtuning.worlds.world import About, TooFewCases

WON, LOST, CUT, ENDLESS, SAID = range(5)
open_now: set[Any] = set()
made: list[Any] = []


class Told(gym.Env):
    """Pays 0.25, then 0.5, and ends as its seed says."""

    observation_space = spaces.Discrete(100)
    action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self):
        open_now.add(self)
        made.append(self)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.kind, self.steps = seed % 10, 0
        return self.kind, {}

    def step(self, action):
        assert action.dtype == np.float32
        self.steps += 1
        reward = 0.25 if self.steps == 1 else 0.5 if self.kind != LOST else -0.5
        over = self.steps == 2 and self.kind != ENDLESS
        return (
            self.kind,
            reward,
            over and self.kind != CUT,
            over and self.kind == CUT,
            {"success": 1} if self.kind == SAID else {},
        )

    def close(self):
        open_now.discard(self)


class Config(BaseModel):
    wind: float = Field(0.5, ge=0, le=1)


class ToldWorld(GymWorld[Config]):
    config_type, max_steps = Config, 7
    about = About(name="told", environment="As its seed says.")
    pictured: ClassVar[list[int]] = []

    def make(self, config, slice):
        return Told()

    def picture(self, env):
        self.pictured.append(env.kind)
        return f"kind {env.kind}"


class Half:
    def act(self, observations):
        return np.full((len(observations), 1), 0.5)


WORLD = ToldWorld()


def cases_of(*seeds):
    return GymCases({}, tuple(Case("all", seed, f"seed {seed}") for seed in seeds))


def test_each_way_to_end_has_its_failure_sums_and_picture():
    WORLD.pictured.clear()
    episodes = WORLD.play(Half(), cases_of(WON, LOST, CUT, ENDLESS, SAID), Config(), seed=0)
    told = [(one.failure, one.metrics["reward"], one.metrics["episode_length"], one.picture) for one in episodes]
    assert told == [
        (None, 0.75, 2.0, ""),
        ("failed", -0.25, 2.0, "kind 1"),
        ("out_of_time", 0.75, 2.0, "kind 2"),
        ("out_of_time", 3.25, 7.0, "kind 3"),
        (None, 0.75, 2.0, ""),
    ]
    assert [one.metrics["success_rate"] for one in episodes] == [1.0, 0.0, 0.0, 0.0, 1.0]
    assert episodes[0].cost == {"env_steps": 2, "episodes": 1}
    assert json.dumps(episodes[0].trace) == '{"actions": [[0.5], [0.5]]}'
    assert [one.case for one in episodes] == [0, 1, 2, 3, 4]
    assert {one.slice for one in episodes} == {"all"}
    assert sorted(WORLD.pictured) == [LOST, CUT, ENDLESS]
    case = WORLD.explain(cases_of(WON, LOST), episodes[1])
    assert (case.kind, case.picture, case.case_id) == ("failed", "kind 1", "1")
    assert case.explanation == "the environment ended the episode, and the task was not done"
    assert WORLD.behaviour(None, episodes) == {"all": {"reward": 1.05, "episode_length": 3.0}}
    assert WORLD.behaviour(None, episodes[:3])["all"]["reward"] == 0.417
    assert not open_now


def test_at_most_64_environments_are_open_and_they_are_used_again():
    made.clear()
    sizes = []

    class Counting(Half):
        def act(self, observations):
            sizes.append(len(observations))
            assert len(open_now) == 64
            return super().act(observations)

    assert len(WORLD.play(Counting(), cases_of(*[WON] * 130), Config(), seed=0)) == 130
    assert (sizes, len(made)) == ([64, 64, 64, 64, 2, 2], 64)


@pytest.mark.parametrize(
    ("act", "note"),
    [
        (lambda seen: np.full((len(seen), 1), 7.0), r"array\(\[7\.\], dtype=float32\).*Box\(-1\.0, 1\.0, \(1,\), float32\)"),
        (lambda seen: np.zeros((len(seen) + 1, 1)), r"\b2 actions\b.*\b1 observations\b"),
        (lambda seen: 1 / 0, "^ZeroDivisionError: division by zero$"),
    ],
)  # fmt: skip
def test_a_policy_that_fails_is_noted_in_its_own_words_and_charged_a_step(act, note):
    policy = Half()
    policy.act = act
    for episode in WORLD.play(policy, cases_of(WON, LOST), Config(), seed=0):
        assert (episode.failure, episode.cost) == ("policy_error", {"env_steps": 1, "episodes": 1})
        assert re.search(note, episode.note)
        assert (episode.metrics, episode.picture) == ({"success_rate": 0.0, "reward": 0.0, "episode_length": 0.0}, "")


def test_an_episode_without_an_end_is_ended_after_10_000_steps_unless_a_world_says_otherwise():
    assert (GymWorld.max_steps, WORLD.max_steps) == (10_000, 7)


def test_a_picture_stays_in_memory():
    one, other = (GymEpisode(0, "all", None, {}, picture=picture) for picture in "ab")
    assert one == other
    assert "picture" not in repr(one)
    assert "picture" not in one.to_json()


def test_what_info_says_is_the_verdict_else_the_last_reward_of_who_ended():
    for reward, terminated, info, done in [
        (1.0, True, {}, True), (0.0, True, {}, False), (1.0, False, {}, False), (0.0, False, {"is_success": True}, True),
        (1.0, True, {"is_success": False, "success": True}, False), (1.0, True, {"success": 0}, False),
    ]:  # fmt: skip
        assert WORLD.success(reward, terminated, info) is done


def test_seeds_of_training_and_of_held_out_cases_are_halves_of_31_bits():
    assert range(2**30) == TRAINING_SEEDS
    assert range(2**30, 2**31) == HELD_OUT_SEEDS
    held_out = WORLD.draw(Config(), 20, seed=1, purpose="test", exclude=())
    assert all(case.seed in HELD_OUT_SEEDS and case.fingerprint == f"seed {case.seed}" for case in held_out)
    probe = WORLD.draw(Config(), 20, seed=1, purpose="probe", exclude=(held_out,))
    assert all(case.seed in TRAINING_SEEDS for case in probe)
    assert (len(held_out), len(probe), WORLD.drawn(Config(), probe)) == (20, 20, {"all": {"share": 1.0}})
    assert (
        WORLD.capacity([Config(wind=0.1)])
        == WORLD.capacity([Config(wind=0.1), Config()])
        == {"config": Config(wind=0.1)}
    )


def test_cases_are_drawn_until_a_thousand_seeds_in_a_row_bring_no_new_one():
    asked = []

    def fingerprint_of(name, seed):
        asked.append(seed)
        return str(len(asked)) if len(asked) % 1_000 == 0 or len(asked) == 1 else "1"

    options = {"seed": 0, "seeds": range(5, 9), "taken": frozenset(), "distinct": True}
    assert [case.fingerprint for case in draw_cases({"a": 3}, fingerprint_of, **options)] == ["1", "1000", "2000"]
    assert set(asked) == {5, 6, 7, 8}
    said = "slice a: a set needs 4 different cases, but only"
    with pytest.raises(TooFewCases, match=rf"{said} 1 were found .*\b1,000 seeds\b"):
        draw_cases({"a": 4}, lambda *_: "same", **options)
    with pytest.raises(TooFewCases, match=f"{said} 0 were found besides the 2 that"):
        draw_cases({"a": 4}, lambda *_: "same", **options | {"taken": frozenset({"same", "other"})})
    assert len(draw_cases({"a": 4}, lambda *_: "same", **options | {"distinct": False})) == 4


def test_a_first_new_case_may_be_the_thousandth():
    asked = []

    def fingerprint_of(name, seed):
        asked.append(seed)
        return "new" if len(asked) == 1_000 else "taken"

    options = {"seed": 0, "seeds": range(9), "taken": frozenset({"taken"}), "distinct": True}
    assert [case.fingerprint for case in draw_cases({"a": 1}, fingerprint_of, **options)] == ["new"]


def test_actions_of_every_kind_are_kept_as_json():
    action = {"push": np.array([0.5, 1.0], np.float32), "side": (np.int64(1), True), "say": ["left", {"again": 2}]}
    kept = {"push": [0.5, 1.0], "side": [1, True], "say": ["left", {"again": 2}]}
    assert json.dumps(_plain(action)) == json.dumps(kept)


STORED = """{
 "config": {
  "wind": 0.5
 },
 "cases": [
  {
   "slice": "all",
   "seed": 7,
   "fingerprint": "\\u00e9"
  }
 ]
}
"""


def test_cases_are_stored_as_they_always_were(tmp_path):
    """Folders of earlier runs are read again, and their checksums hold."""
    cases = GymCases({"wind": 0.5}, (Case("all", 7, "é"),))
    assert cases.save(tmp_path / "cases.json").read_text(encoding="utf-8") == STORED
    assert GymCases.load(tmp_path / "cases.json") == cases


def test_shares_become_counts_by_largest_remainders_and_bytes_their_hash():
    assert apportioned({"a": 0.5, "b": 0.3, "c": 0.2}, 7) == {"a": 4, "b": 2, "c": 1}
    assert apportioned({"a": 0.26, "b": 0.35, "c": 0.39}, 10) == {"a": 3, "b": 3, "c": 4}
    assert digest(b"x") == "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    assert digest("x") == "x"
    assert digest(5) == "5"
