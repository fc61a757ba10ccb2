"""The environment to train in: which are open, what a seed fixes, what is left to train on; on environments that count themselves."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from pydantic import BaseModel, Field

from envtuning.worlds.gym_cases import HELD_OUT_SEEDS
from envtuning.worlds.gym_task import FAILURES
from envtuning.worlds.gym_world import GymWorld
from envtuning.worlds.world import About, InfeasibleConfig, TooFewCases

open_now: set[Any] = set()


class Room(gym.Env):
    """Says its seed; is cut off by the action 1, else it goes on for ever."""

    action_space = spaces.Discrete(2)

    def __init__(self, doors):
        self.observation_space = spaces.Box(0, np.inf, (doors,))
        open_now.add(self)

    def reset(self, *, seed=None, options=None):
        self.seed, self.options = seed, options
        return self.observation_space.low, {"seed": seed}

    def step(self, action):
        return self.observation_space.low, 0.5, False, action == 1, {}

    def close(self):
        open_now.remove(self)  # once


class Piece(BaseModel):
    share: float = Field(1.0, ge=0, le=1)
    doors: int = Field(1, ge=0, le=9)


class Config(BaseModel):
    slices: dict[str, Piece]


def config_of(**doors):
    return Config(slices={name: Piece(doors=count) for name, count in doors.items()})


class RoomWorld(GymWorld[Config]):
    config_type, max_steps = Config, 3
    about = About(name="rooms", environment="Doors.", failures={"failed": "no way out", "lost": "went astray"})
    same_to_train_on: ClassVar[bool] = False

    def make(self, config, slice):
        if not config.slices[slice].doors:
            raise ValueError("a room needs a door")
        return Room(config.slices[slice].doors)

    def fingerprint(self, env, seed):
        return "same" if self.same_to_train_on and seed not in HELD_OUT_SEEDS else f"{seed}"


class OneLeft(RoomWorld):
    same_to_train_on = True


WORLD = RoomWorld()


@pytest.fixture(autouse=True)
def nothing_stays_open():
    open_now.clear()
    yield
    assert not open_now


def training(config, seed=0):
    return WORLD.make_env(config, exclude=(), capacity={}, seed=seed)


def test_what_was_opened_is_closed_when_it_is_replaced_or_refused_and_at_the_end():
    env = training(config_of(a=1, b=1))
    assert len(open_now) == 2
    env.set_config(config_of(a=1))
    assert len(open_now) == 3  # the episode that is going on is played to its end
    env.set_config(config_of(c=1, d=1))
    assert len(open_now) == 4  # in place of the one that never came into force
    env.set_config(config_of(c=1, d=1))
    assert len(open_now) == 4
    for wrong, said in ((config_of(a=2), "observation space"), (config_of(a=1, b=0), "a room needs a door")):
        with pytest.raises(InfeasibleConfig, match=said):
            env.set_config(wrong)
        assert len(open_now) == 4
    assert env.reset()[1]["slice"] in "cd"
    assert len(open_now) == 2
    env.set_config(config_of(e=1))
    env.close()


def test_a_config_that_was_changed_in_place_is_another_one():
    config = config_of(a=1)
    env = training(config)
    env.reset()
    config.slices["b"] = config.slices.pop("a")
    assert env.reset()[1]["slice"] == "a"  # it was not yet told
    env.set_config(config)
    assert env.reset()[1]["slice"] == "b"
    config = env.get_config()
    config.slices["c"] = config.slices.pop("b")
    env.set_config(config)
    assert env.reset()[1]["slice"] == "c"
    env.close()


def test_a_config_counts_as_it_was_when_it_was_set():
    env = training(config_of(a=1))
    config = config_of(b=1)
    env.set_config(config)
    config.slices["c"] = config.slices.pop("b")
    assert env.reset()[1]["slice"] == "b"
    env.close()


def test_drawing_and_checking_leave_nothing_open():
    WORLD.check(config_of(a=1, b=1))
    with pytest.raises(InfeasibleConfig, match="slice b: its environment cannot be made"):
        WORLD.check(config_of(a=1, b=0))
    assert len(WORLD.draw(config_of(a=1, b=1), 3, seed=0, purpose="validation", exclude=())) == 6
    assert WORLD.capacity([config_of(a=1), config_of(b=1)]) == {"config": config_of(a=1)}


def test_the_seed_that_an_environment_was_made_with_fixes_its_sequence():
    dealt = []
    for seed in (1, 1, 2):
        env = training(config_of(a=1, b=1), seed)
        dealt.append([tuple(env.reset()[1].items()) for _ in range(10)])
        env.close()
    assert dealt[0] == dealt[1] != dealt[2]


def test_an_episode_ends_at_the_world_s_limit_whatever_the_one_before_it():
    env = training(config_of(a=1))
    last = {"slice": "a", "is_success": False, "score": 0.0, "failure": "out_of_time"}
    for _ in range(2):
        env.reset(options={"lit": True})
        assert env.current.options == {"lit": True}
        assert [env.step(0)[1:] for _ in range(2)] == [(0.5, False, False, {"slice": "a"})] * 2
        assert env.step(0)[1:] == (0.5, False, True, last | {"case": env._case})
    env.reset()
    assert env.step(1)[1:] == (0.5, False, True, last | {"case": env._case})
    env.close()


def test_one_case_that_two_slices_share_is_enough_to_train_on():
    world = OneLeft()
    held_out = world.draw(config_of(a=1, b=1), 2, seed=0, purpose="test", exclude=())
    assert len(held_out) == 4
    probe = world.draw(config_of(a=1, b=1, c=1), 1, seed=0, purpose="probe", exclude=(held_out,))
    assert probe.fingerprints() == {"same"}
    assert world.drawn(config_of(a=1, b=1, c=1), probe) == {name: {"share": 0.333} for name in "abc"}
    with pytest.raises(TooFewCases, match="nothing would be left to train on: slice a: a set needs 1 different cases"):
        world.draw(config_of(a=1), 2, seed=1, purpose="test", exclude=(probe,))


def test_a_world_s_own_kinds_of_failures_stand_beside_those_of_every_gymnasium_world():
    assert RoomWorld.about.failures == FAILURES | {"failed": "no way out", "lost": "went astray"}
    assert OneLeft.about is RoomWorld.about


def test_a_world_may_have_other_bases_that_are_told_of_their_classes():
    class Named:
        def __init_subclass__(cls, *, named="", **kwargs):
            super().__init_subclass__(**kwargs)
            cls.named = named

    class Mine(RoomWorld, Named, named="mine"): ...

    assert Mine.named == "mine"
