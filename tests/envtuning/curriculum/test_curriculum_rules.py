"""Where the curriculum's wrappers look for what takes a config, and what counts as a success, case by case."""

from __future__ import annotations

import warnings
from functools import partial
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from pydantic import BaseModel

from envtuning.curriculum.apply import apply_config, config_below, raise_unless_fits
from envtuning.curriculum.ended import outcome_of
from envtuning.curriculum.ladder import Ladder
from envtuning.curriculum.wrappers import CurriculumEnv, CurriculumParallelEnv, CurriculumVectorEnv
from envtuning.errors import SpecError
from envtuning.outcomes import Outcome


def test_a_ladder_asks_for_80_of_100_episodes_where_nobody_says_otherwise():
    def climb(ladder, successes):
        ladder.observe(Outcome("all", successes, float(successes)))
        return ladder.next()

    ladder = Ladder(["easy", "hard"])
    assert [climb(ladder, number >= 20) for number in range(100)] == [None] * 99 + ["hard"]
    again = Ladder(["easy", "hard"])
    assert [climb(again, number >= 21) for number in range(100)] == [None] * 100
    assert climb(Ladder([1], threshold=1.0, window=1), True) is None  # the last stays


def test_a_ladder_in_print():
    ladder = Ladder(["easy", "hard"], threshold=0.7, window=50)
    for success in (True, False, True):
        ladder.observe(Outcome("all", success, float(success)))
    assert str(ladder) == "Ladder: rung 0, of 0 to 1; 2 of the last 3 episodes on it succeeded, and 70% of 50 lead on"
    ladder = Ladder(["easy", "hard"], threshold=0.999, window=1)
    assert str(ladder).endswith("and 99.9% of 1 lead on")
    ladder(True)
    assert str(ladder) == "Ladder: rung 1, of 0 to 1; 0 of the last 0 episodes on it succeeded, and it is the last"


class Takes:
    """Takes a config by one of the names that are known."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def set_config(self, config: Any) -> None:
        self.told.append(config)

    def get_config(self) -> Any:
        return self.told[-1]


class Task:
    """As RLlib's environments do."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def set_task(self, config: Any) -> None:
        self.told.append(config)


class Remote:
    """Its copies live in other processes; ``method`` reaches them."""

    def __init__(self, method: str) -> None:
        self.told: list[Any] = []

        def asked(self: Any, name: str, *given: Any) -> list[Any]:
            if name == "has_wrapper_attr":
                return [given == ("set_config",)]
            return [self.told.append((name, *given))]

        setattr(type(self), method, asked)


def wrapper(inner: Any, name: str, **more: Any) -> Any:
    return type("Wrapper", (), {})() if inner is None else _with(type("Wrapper", (), {})(), {name: inner} | more)


def _with(one: Any, values: dict[str, Any]) -> Any:
    vars(one).update(values)
    return one


@pytest.mark.parametrize("name", ["env", "par_env", "venv", "lakes"])
@pytest.mark.parametrize("kind", [Takes, Task])
def test_a_config_goes_through_the_wrappers_of_every_library(name, kind):
    inner = kind()
    apply_config(wrapper(wrapper(inner, name), name), "config")
    assert inner.told == ["config"]


def test_a_config_goes_to_every_copy_and_is_read_from_the_first():
    copies = [Takes(), Takes()]
    several = wrapper(SimpleNamespace(envs=[wrapper(copy, "env") for copy in copies]), "env")
    apply_config(several, "config")
    assert [copy.told for copy in copies] == [["config"], ["config"]]
    copies[1].set_config("other")
    assert config_below(several) == "config"
    with pytest.raises(TypeError, match="has get_config"):
        config_below(wrapper(Task(), "env"))


@pytest.mark.parametrize("method", ["call", "env_method"])
def test_copies_in_other_processes_are_called(method):
    remote = type("One", (Remote,), {})(method)
    apply_config(wrapper(remote, "env"), "config")
    assert remote.told == [("set_config", "config")]


def test_a_wrapper_of_stable_baselines3_passes_on_to_what_it_wraps():
    outer = type("Outer", (Remote,), {})("env_method")
    outer.venv = inner = Takes()
    apply_config(outer, "config")
    assert (outer.told, inner.told) == ([], ["config"])


class Room:
    """Has room for configs up to a size."""

    class Config(BaseModel):
        size: int

    def get_config(self) -> Any:
        return self.Config(size=1)

    def raise_unless_fits(self, config: Any) -> None:
        if config.size > 3:
            raise ValueError(f"size {config.size} is above 3")


@pytest.mark.parametrize("config", [{"size": 4}, Room.Config(size=4)])
@pytest.mark.parametrize(
    "env",
    [Room(), SimpleNamespace(batch=Room()), SimpleNamespace(envs=[SimpleNamespace(), SimpleNamespace(env=Room())])],
)
def test_a_config_without_room_is_refused_wherever_the_room_is_known(env, config):
    raise_unless_fits(env, {"size": 3})
    with pytest.raises(ValueError, match="size 4 is above 3"):
        raise_unless_fits(wrapper(env, "env"), config)
    raise_unless_fits(SimpleNamespace(envs=None), config)  # nothing is known


class Doors(BaseModel):
    open: int = 1


class Wide:
    """Makes a room's config out of one of its own, as a wrapper of lakes with many holes might."""

    config = Doors()

    def __init__(self, **inner: Any) -> None:
        vars(self).update(inner)

    def set_config(self, config: Doors) -> None:
        self.config = config


@pytest.mark.parametrize("inner", [{"env": Room()}, {"envs": [Room(), Room()]}])
def test_a_wrapper_that_takes_configs_of_its_own_is_not_asked_for_those_of_what_it_wraps(inner):
    raise_unless_fits(wrapper(Wide(**inner), "env"), Doors(open=9))
    with pytest.raises(SpecError, match="is of type dict, and the environment takes a Doors"):
        raise_unless_fits(Wide(**inner), {"open": 9})


class Passes(Wide):
    """Takes what it wraps takes."""

    config = None


@pytest.mark.parametrize(
    ("env", "config"),
    [
        (Passes(env=Room()), Room.Config(size=4)),
        (Passes(envs=[Room(), Room()]), Room.Config(size=4)),
        (Wide(envs=[Room(), Room()]), Room.Config(size=4)),
        (wrapper(Passes(env=SimpleNamespace(envs=[SimpleNamespace(env=Room())])), "env"), Room.Config(size=4)),
    ],
)
def test_a_wrapper_that_passes_configs_on_refuses_those_without_room(env, config):
    with pytest.raises(ValueError, match="size 4 is above 3"):
        raise_unless_fits(env, config)


@pytest.mark.parametrize(
    ("info", "otherwise", "key", "success"),
    [
        ({}, True, None, True),
        ({}, False, None, False),
        ({"success": 1}, False, None, True),
        ({"is_success": False, "success": True}, True, None, False),  # SB3's word first
        ({"is_success": None, "success": True}, False, None, True),
        ({"success": True, "valid": False}, True, "valid", False),
        ({"success": True, "is_success": True, "valid": False}, True, None, False),  # a lake's objective
        ({"success": True, "is_success": True, "valid": False}, True, "success", True),
        (
            {"is_success": True, "valid": False},
            False,
            None,
            True,
        ),  # no lake: a user's own entry, which may mean anything
        ({"success": True, "valid": None}, False, None, True),
        ({"final_info": {"success": True}, "success": False}, False, None, True),
    ],
)
def test_success_is_what_the_last_info_says_or_else_a_reward(info, otherwise, key, success):
    assert outcome_of(info, lambda: otherwise, key).success is success


class Episode(gym.Env):
    """One step long, with this reward; cut off where it truncates."""

    observation_space = action_space = gym.spaces.Discrete(2)

    def __init__(self, reward: float, terminated: bool, truncated: bool) -> None:
        self.ends, self.resets = (reward, terminated, truncated), []

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> Any:
        self.resets.append((seed, options))
        return 0, {}

    def step(self, action: Any) -> Any:
        return 0, *self.ends, {}


ENDS = [
    (1.0, True, False, [True]),
    (0.0, True, False, [False]),  # a reward of 0 is none
    (0.5, True, False, [True]),
    (-1.0, True, False, [False]),
    (1.0, False, True, [False]),  # cut off on its way
    (1.0, False, False, []),  # not over
]


@pytest.mark.parametrize(("reward", "terminated", "truncated", "heard"), ENDS)
def test_without_a_word_an_episode_succeeds_by_ending_with_a_reward(reward, terminated, truncated, heard):
    told: list[bool] = []
    env = CurriculumEnv(Episode(reward, terminated, truncated), told.append)
    assert env.step(0) == (0, reward, terminated, truncated, {})
    assert told == heard
    CurriculumEnv(Episode(reward, terminated, truncated)).step(0)  # nobody listens


@pytest.mark.parametrize(("reward", "terminated", "truncated", "heard"), ENDS)
def test_so_it_does_in_the_vector_form(reward, terminated, truncated, heard):
    class Vector(gym.vector.VectorEnv):
        num_envs = 2
        single_observation_space = single_action_space = gym.spaces.Discrete(2)
        observation_space = action_space = gym.spaces.MultiDiscrete([2, 2])

        def step(self, actions: Any) -> Any:
            second = np.array([False, terminated]), np.array([False, truncated])
            return np.zeros(2), np.array([0.0, reward]), *second, {}

    told: list[bool] = []
    CurriculumVectorEnv(Vector(), told.append).step(np.zeros(2))
    assert told == heard
    CurriculumVectorEnv(Vector()).step(np.zeros(2))


class Walk(gym.Env):
    """Five steps, each with a reward if ``pays``; the last one terminates with a reward. Each costs two if ``costs``. ``told``: what its last info says."""

    observation_space = action_space = gym.spaces.Discrete(2)

    def __init__(self, pays: bool = False, told: Any = None, falls: bool = False, costs: bool = False) -> None:
        self.pays, self.told, self.falls, self.costs = pays, told or {}, falls, costs

    def set_config(self, config: Any) -> None:
        pass

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> Any:
        self.steps = 0
        return 0, {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        over = self.steps == 5
        reward = float(self.pays or over) - 2 * (self.costs or (over and self.falls))
        return 0, reward, over, False, self.told if over else {}


WALKS = [
    ({"pays": True}, True),  # as CartPole
    ({}, False),  # only at the goal, which is reached every time
    ({"pays": True, "falls": True}, False),  # the end without a reward tells a fall
    ({"costs": True}, True),  # as Acrobot: the goal pays nothing
    ({"costs": True, "told": {"is_success": True}}, False),
    ({"falls": True}, False),  # no success yet, where only the end pays
    ({"pays": True, "told": {"is_success": True}}, False),
]


def alone(walk: dict) -> None:
    env = CurriculumEnv(Walk(**walk), Ladder([1, 2]))
    for _ in range(40):
        env.reset()
        while not env.step(0)[2]:
            pass


def in_vectors(walk: dict, mode: gym.vector.AutoresetMode) -> None:
    envs = gym.vector.SyncVectorEnv([lambda: Walk(**walk)] * 25, autoreset_mode=mode)
    envs = CurriculumVectorEnv(envs, Ladder([1, 2]))
    envs.reset()
    for _ in range(40):
        envs.step(np.zeros(25, int))


@pytest.mark.parametrize(("walk", "doubted"), WALKS)
@pytest.mark.parametrize(
    "play", [alone, *(partial(in_vectors, mode=mode) for mode in list(gym.vector.AutoresetMode)[:2])]
)
def test_where_every_step_pays_the_success_by_reward_is_doubted_once(play, walk, doubted):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        play(walk)
    assert [str(one.message).partition(",")[0] for one in told] == ["infos do not say which episodes succeed"] * doubted


class Parallel:
    """Two agents whose episode ends like this; the agents that are left go on."""

    possible_agents = agents = ("a", "b")
    render_mode = None

    def __init__(self, rewards: tuple, terminated: tuple, left: tuple = ()) -> None:
        self.metadata, self.rewards, self.terminated, self.left, self.resets = {}, rewards, terminated, left, []

    def observation_space(self, agent: str) -> gym.Space:
        return gym.spaces.Discrete(2)

    action_space = observation_space

    def reset(self, seed: int | None = None, options: dict | None = None) -> Any:
        self.resets.append((seed, options))
        return {}, {}

    def step(self, actions: Any) -> Any:
        self.agents = self.left
        ended = dict(zip("ab", self.terminated))
        return {}, dict(zip("ab", self.rewards)), ended, {agent: not over for agent, over in ended.items()}, {}


@pytest.mark.parametrize(
    ("rewards", "terminated", "left", "heard"),
    [
        ((1.0, 0.5), (True, True), (), [True]),
        ((1.0, 0.0), (True, True), (), [False]),
        ((1.0, 1.0), (True, False), (), [False]),  # one was cut off
        ((1.0, 1.0), (True, True), ("b",), []),  # somebody is left
        ((), (), (), []),  # it was over before
    ],
)
def test_a_parallel_episode_succeeds_when_all_ended_with_a_reward(rewards, terminated, left, heard):
    told: list[bool] = []
    CurriculumParallelEnv(Parallel(rewards, terminated, left), told.append).step({})
    assert told == heard


@pytest.mark.parametrize(
    ("interface", "inner"), [(CurriculumEnv, Episode(0.0, True, False)), (CurriculumParallelEnv, Parallel((), ()))]
)
def test_seeds_and_options_go_to_the_environment(interface, inner):
    interface(inner).reset(seed=7, options={"x": 1})
    assert inner.resets == [(7, {"x": 1})]


def test_what_is_no_curriculum_and_what_a_curriculum_gives_that_is_no_config_are_refused():
    import mapf_frozenlake as mfl

    lake = mfl.LakeConfig.single(3, 1, horizon=1)

    def env() -> gym.Env:
        return gym.make("MAPFFrozenLake-v0", config=lake)

    with pytest.raises(ValueError, match="configs is a LakeConfig: give a list of configs"):
        Ladder(lake)
    for given, kind in ((5, "int"), ("easy", "str"), (lake, "LakeConfig")):
        with pytest.raises(
            SpecError, match=f"curriculum is a {kind}: give a Ladder, an EngineerCurriculum or a function"
        ):
            CurriculumEnv(env(), given)
    wrapped = CurriculumEnv(env(), lambda success: 5)
    wrapped.reset(seed=0)
    with pytest.raises(
        SpecError, match="the config 5 is of type int, and the environment takes a LakeConfig: give one"
    ):
        wrapped.step(np.array([4]))  # the horizon


class Room(BaseModel):
    length: int = 2


class Roomy(Episode):
    """Somebody's own, whose config is a pydantic model."""

    def __init__(self) -> None:
        super().__init__(0.0, True, False)
        self.config = Room()

    def set_config(self, config: Room) -> None:
        self.config = config


def test_a_dict_for_a_config_of_ones_own_is_refused_when_it_is_set():
    one, copies = CurriculumEnv(Roomy()), CurriculumVectorEnv(gym.vector.SyncVectorEnv([Roomy] * 2))
    for env in (one, copies):
        with pytest.raises(
            SpecError, match=r"'length': 3. is of type dict, and the environment takes a Room: give Room\(\*\*…\)"
        ):
            env.set_config({"length": 3})
        env.set_config(Room(length=3))
    one.reset()
    assert one.unwrapped.config == copies.env.envs[1].config == Room(length=3)


def test_a_lake_takes_a_dict_and_says_at_once_what_is_wrong_with_it():
    import mapf_frozenlake as mfl

    env = CurriculumEnv(gym.make("MAPFFrozenLake-v0", size=3, num_agents=1))
    with pytest.raises(
        SpecError, match="the config is no LakeConfig: banana: there is no such field: the fields are slices"
    ):
        env.set_config({"banana": 1})
    env.set_config(mfl.LakeConfig.single(3, 1, hole_ratio=0.0).model_dump())
    env.reset(seed=0)
    assert env.unwrapped.get_config() == mfl.LakeConfig.single(3, 1, hole_ratio=0.0)
