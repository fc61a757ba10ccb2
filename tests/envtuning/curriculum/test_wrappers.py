"""The rule: a new config goes into force at an environment's next reset, and nothing else about the environment changes."""

from __future__ import annotations

import warnings
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given
from hypothesis import strategies as st
from pettingzoo.test import parallel_api_test
from pettingzoo.utils import BaseParallelWrapper
from pydantic import BaseModel, Field

import mapf_frozenlake as mfl
from envtuning.curriculum.apply import apply_config, config_below
from envtuning.curriculum.engineer_curriculum import EngineerCurriculum
from envtuning.curriculum.ladder import Ladder
from envtuning.curriculum.wrappers import CurriculumEnv, CurriculumParallelEnv, CurriculumVectorEnv, SpacesChanged
from envtuning.errors import SpecError
from envtuning.outcomes import Outcome

EASY = mfl.LakeConfig.single(3, num_agents=1, hole_ratio=0.0, horizon=5)
HARD = mfl.LakeConfig.single(6, num_agents=2, hole_ratio=0.2, horizon=7)
ROOM = {"max_size": 6, "max_agents": 2}


class Counter(gym.Env):
    """Somebody else's environment: an episode of ``length`` steps, told apart by its observation; knows no configs."""

    observation_space = gym.spaces.Box(0, 100, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self):
        self.length = 2
        self.left = 0

    def reset(self, *, seed=None, options=None):
        self.left = self.length
        return np.array([self.length], np.float32), {}

    def step(self, action):
        self.left -= 1
        return np.array([self.length], np.float32), float(action), self.left == 0, False, {}


def set_length(env, length):
    env.unwrapped.length = length


def wait(env):
    return np.full(env.action_space.shape, 4)


def steps_until_over(env):
    for steps in range(1, 100):
        *_, terminated, truncated, _ = env.step(wait(env))
        if terminated or truncated:
            return steps
    raise AssertionError("the episode did not end")


def test_running_episode_keeps_its_config():
    env = CurriculumEnv(gym.make("MAPFFrozenLake-v0", config=EASY, **ROOM))
    env.reset(seed=0)
    env.set_config(HARD)
    assert env.unwrapped.get_config() == EASY
    assert env.get_config() is None
    assert steps_until_over(env) == EASY.horizon
    env.reset()
    assert env.unwrapped.get_config() == HARD
    assert env.get_config() == HARD
    assert steps_until_over(env) == HARD.horizon


def test_a_function_serves_environments_without_set_config():
    env = CurriculumEnv(Counter(), apply=set_length)
    env.reset()
    env.set_config(5)
    assert env.step(0)[0] == 2
    assert env.reset()[0] == 5


def test_without_either_it_says_what_to_give():
    env = CurriculumEnv(Counter())
    env.set_config(5)
    with pytest.raises(TypeError, match="give apply="):
        env.reset()


def test_config_beyond_the_spaces_is_refused():
    def widen(env, config):
        env.unwrapped.observation_space = gym.spaces.Box(0, 100, (config,), np.float32)

    env = CurriculumEnv(Counter(), apply=widen)
    env.set_config(3)
    with pytest.raises(SpacesChanged, match="max_size"):
        env.reset()


INTERFACES = {
    "gymnasium": (CurriculumEnv, lambda **room: gym.make("MAPFFrozenLake-v0", config=EASY, **room)),
    "vector": (CurriculumVectorEnv, lambda **room: gym.make_vec("MAPFFrozenLake-v0", 2, config=EASY, **room)),
    "copies": (
        CurriculumVectorEnv,
        lambda **room: SyncVectorEnv([lambda: gym.make("MAPFFrozenLake-v0", config=EASY, **room)] * 2),
    ),
    "parallel": (CurriculumParallelEnv, lambda **room: mfl.parallel_env(config=EASY, **room)),
}


@pytest.mark.parametrize("interface", INTERFACES)
def test_lake_beyond_its_room_is_refused_at_once_and_the_old_config_stays(interface):
    wrapper, make = INTERFACES[interface]
    env = wrapper(make(**ROOM))
    with pytest.raises(mfl.LakeError, match="make the env with max_size=7"):
        env.set_config(mfl.LakeConfig.single(7))
    with pytest.raises(mfl.LakeError, match="make the env with max_agents=3"):
        env.set_config({"num_agents": 3, "slices": {5: {}}})
    assert env.get_config() is None
    env.reset(seed=0)


@pytest.mark.parametrize("interface", INTERFACES)
def test_a_ladder_beyond_the_room_is_refused_before_its_first_step(interface):
    wrapper, make = INTERFACES[interface]
    with pytest.raises(mfl.LakeError, match="make the env with max_size=6"):
        wrapper(make(), curriculum=Ladder([EASY, HARD, EASY]))
    with pytest.raises(mfl.LakeError, match="make the env with max_agents=2"):
        wrapper(make(max_size=6), curriculum=Ladder([EASY, HARD, EASY]))
    wrapper(make(**ROOM), curriculum=Ladder([EASY, HARD, EASY]))


class Holes(BaseModel):
    ratio: float = Field(0.1, ge=0.0, le=0.5, description="The part of the cells that are holes.")


class DrawsHoles:
    """A wrapper with a config of its own, from which it makes the lake's at each reset."""

    config = Holes()

    def set_config(self, config):
        self.config = config

    def reset(self, seed=None, options=None):
        lake = mfl.LakeConfig.single(3, 1, hole_ratio=self.config.ratio)
        return self.env.reset(seed=seed, options={"config": lake})


class HolyEnv(DrawsHoles, gym.Wrapper):
    pass


class HolyParallelEnv(DrawsHoles, BaseParallelWrapper):
    pass


HOLY = {
    "gymnasium": (CurriculumEnv, lambda: HolyEnv(gym.make("MAPFFrozenLake-v0", config=EASY))),
    "copies": (
        CurriculumVectorEnv,
        lambda: SyncVectorEnv([lambda: HolyEnv(gym.make("MAPFFrozenLake-v0", config=EASY))] * 2),
    ),
    "parallel": (CurriculumParallelEnv, lambda: HolyParallelEnv(mfl.parallel_env(config=EASY))),
}


@pytest.mark.parametrize("interface", HOLY)
def test_a_wrapper_of_a_lake_may_have_a_config_of_its_own(interface):
    wrapper, make = HOLY[interface]
    env = wrapper(make(), curriculum=Ladder([Holes(ratio=0.0), Holes(ratio=0.5)]))
    env.reset(seed=0)
    assert config_below(env.env).slices[3].hole_ratio == 0.0
    env.set_config(Holes(ratio=0.5))
    env.reset(seed=0)
    assert config_below(env.env).slices[3].hole_ratio == 0.5
    with pytest.raises(SpecError, match="is of type dict, and the environment takes a Holes"):
        env.set_config({"ratio": 0.5})


class Part(BaseModel):
    share: float = Field(0.5, ge=0.0, le=1.0, description="Weight of these lakes in the draw.")


class Parts(BaseModel):
    few: Part = Part()
    many: Part = Part()


class TwoSlices(gym.Wrapper):
    """As the page on engineers says: two slices of one map size."""

    config = Parts()

    def set_config(self, config):
        self.config = config

    def reset(self, **options):
        self.slice = (
            "few"
            if self.np_random.random() * (self.config.few.share + self.config.many.share) < self.config.few.share
            else "many"
        )
        lake = mfl.LakeConfig.single(3, 1, hole_ratio={"few": 0.0, "many": 0.5}[self.slice], horizon=5)
        return self.env.reset(options={"config": lake})

    def step(self, action):
        *rest, info = self.env.step(action)
        return *rest, info | {"slice": self.slice}


def test_a_wrapper_makes_two_slices_of_lakes_of_one_size():
    curriculum = EngineerCurriculum("once", Parts(), every=40)
    env = CurriculumEnv(TwoSlices(gym.make("MAPFFrozenLake-v0", config=EASY)), curriculum)
    env.reset()
    while not curriculum.version:
        *_, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()
    assert {row.name for row in curriculum.history[0].training_results} == {"few", "many"}
    assert env.env.config == curriculum.config != Parts()


def test_an_apply_of_ones_own_may_take_anything_for_a_config():
    env = CurriculumEnv(
        gym.make("MAPFFrozenLake-v0", config=EASY, **ROOM),
        curriculum=Ladder(["hard"]),
        apply=lambda env, name: apply_config(env, {"hard": HARD}[name]),
    )
    env.reset(seed=0)
    assert env.unwrapped.get_config() == HARD


def test_wrapped_and_bare_play_the_same_episodes():
    def episode(env):
        rng = np.random.default_rng(0)
        frames = [env.reset(seed=3)[0]]
        for _ in range(50):
            observation, reward, terminated, truncated, _ = env.step(rng.integers(0, 5, 2))
            frames += [observation, np.array([reward, terminated, truncated])]
            if terminated or truncated:
                frames.append(env.reset()[0])
        return frames

    bare = gym.make("MAPFFrozenLake-v0", config=HARD, **ROOM)
    wrapped = CurriculumEnv(gym.make("MAPFFrozenLake-v0", config=EASY, **ROOM))
    wrapped.set_config(HARD)
    for one, other in zip(episode(bare), episode(wrapped), strict=True):
        np.testing.assert_array_equal(one, other)


def test_ladder_climbs_under_a_running_trainer():
    env = CurriculumEnv(Counter(), curriculum=Ladder([2, 3, 4], threshold=1.0, window=2), apply=set_length)
    lengths = []
    for _ in range(7):
        env.reset()
        lengths.append(env.unwrapped.length)
        while not env.step(1)[2]:
            pass
    assert lengths == [2, 2, 3, 3, 4, 4, 4]


def test_ladder_stays_without_success():
    env = CurriculumEnv(Counter(), curriculum=Ladder([2, 3], threshold=0.5, window=2), apply=set_length)
    for _ in range(6):
        env.reset()
        while not env.step(0)[2]:  # rewards of 0 are no success
            pass
    assert env.unwrapped.length == 2


@given(st.lists(st.booleans(), max_size=60), st.integers(1, 6), st.integers(10, 100))
def test_ladder_climbs_exactly_when_the_window_is_full_and_good(successes, window, percent):
    ladder = Ladder(range(5), threshold=percent / 100, window=window)
    rung, since = 0, []
    for success in successes:
        since.append(success)
        recent = since[-window:]
        climbs = rung < 4 and len(since) >= window and 100 * sum(recent) >= percent * window
        ladder.observe(Outcome("all", success, float(success)))
        assert ladder.next() == (rung + 1 if climbs else None)
        if climbs:
            rung, since = rung + 1, []
        assert ladder.config == rung


@pytest.mark.parametrize("percent", range(1, 101))
def test_ladder_climbs_when_exactly_the_threshold_succeeded(percent):
    for successes, climbs in ((percent, 1), (percent - 1, None)):
        ladder = Ladder(range(2), threshold=percent / 100, window=100)
        for episode in range(100):
            ladder.observe(Outcome("all", episode < successes, 0.0))
        assert ladder.next() == climbs


@pytest.mark.parametrize("bad", [{"threshold": 0.0}, {"threshold": 1.5}, {"window": 0}])
def test_ladder_refuses_nonsense(bad):
    with pytest.raises(ValueError, match="threshold"):
        Ladder([1], **bad)
    with pytest.raises(ValueError, match="at least one"):
        Ladder([])


def horizons(envs):
    return envs.unwrapped.batch.horizon.tolist()


def test_each_copy_swaps_at_its_own_reset():
    envs = CurriculumVectorEnv(gym.make_vec("MAPFFrozenLake-v0", num_envs=3, config=EASY, **ROOM))
    envs.reset(seed=0)
    envs.reset(options={"reset_mask": np.array([True, False, False]), "config": HARD})
    envs.reset(options={"reset_mask": np.array([False, True, True]), "config": EASY})
    envs.set_config(HARD)
    seen = []
    for _ in range(9):
        seen.append(horizons(envs))
        envs.step(np.full(envs.action_space.shape, 4))
    assert seen[:6] == [[7, 5, 5]] * 6
    assert seen[7] == [7, 7, 7]


def test_vector_of_separate_copies():
    envs = SyncVectorEnv([lambda: gym.make("MAPFFrozenLake-v0", config=EASY, **ROOM)] * 2)
    envs = CurriculumVectorEnv(envs)
    envs.reset(seed=0)
    envs.set_config(HARD)
    assert [env.unwrapped.get_config() for env in envs.unwrapped.envs] == [HARD, HARD]


@pytest.mark.slow
def test_vector_of_copies_in_other_processes():
    make = lambda: gym.make("MAPFFrozenLake-v0", config=EASY, **ROOM)  # noqa: E731
    envs = CurriculumVectorEnv(gym.vector.AsyncVectorEnv([make] * 2))
    try:
        envs.reset(seed=0)
        envs.set_config(HARD)
        assert [config == HARD for config in envs.env.call("get_config")] == [True, True]
    finally:
        envs.close()


def test_vector_ladder_hears_of_every_copy():
    start = mfl.Instance(holes=np.zeros((2, 2), bool), starts=[[0, 0]], goals=[[0, 1]])
    envs = gym.make_vec("MAPFFrozenLake-v0", num_envs=4, config=EASY, **ROOM)
    ladder = Ladder([EASY, HARD], threshold=1.0, window=4)
    envs = CurriculumVectorEnv(envs, curriculum=ladder)
    envs.reset(seed=0, options={"instance": start})
    assert envs.get_config() == EASY
    envs.step(np.full((4, 2), mfl.Action.RIGHT))
    assert ladder.rung == 1
    assert envs.get_config() == HARD
    assert envs.unwrapped.get_config() == HARD


class Rung(gym.Env):
    """Episodes of 1 to 6 steps, which only those that began on rung 0 win; it waits with a new rung for the reset."""

    observation_space = action_space = gym.spaces.Discrete(2)

    def __init__(self, length):
        self.length, self.next = length, 0

    def set_config(self, rung):
        self.next = rung

    def reset(self, *, seed=None, options=None):
        self.rung, self.left = self.next, self.length
        return 0, {}

    def step(self, action):
        self.left -= 1
        return 0, 0.0, self.left == 0, False, {"success": self.rung == 0} if self.left == 0 else {}


def play_rungs(curriculum, mode, steps=40):
    """30 copies of 6 lengths under this curriculum; which rung the episodes that ended in each step had begun on."""
    copies = [Rung(1 + copy % 6) for copy in range(30)]
    envs = SyncVectorEnv([lambda copy=copy: copy for copy in copies], autoreset_mode=mode)
    envs = CurriculumVectorEnv(envs, curriculum)
    envs.reset(seed=0)
    over, ended = np.zeros(30, bool), []
    for _ in range(steps):
        if mode == AutoresetMode.DISABLED and over.any():
            envs.reset(options={"reset_mask": over})
        began = [copy.rung for copy in copies]  # a same-step reset comes between
        *_, terminated, truncated, _ = envs.step(np.zeros(30, int))
        over = terminated | truncated
        ended.append([began[copy] for copy in np.flatnonzero(over)])
    return envs, ended


@pytest.mark.parametrize("when", ["before the first reset", "after it"])
def test_a_state_that_is_loaded_brings_its_config_also_if_it_was_never_swapped(when):
    def two(first):
        return EngineerCurriculum("fixed", mfl.LakeConfig.single(4, 2, hole_ratio=first), every=100)

    state, alone = two(0.1).state_dict(), CurriculumEnv(gym.make("MAPFFrozenLake-v0", config=HARD), two(0.2))
    vector = CurriculumVectorEnv(SyncVectorEnv([lambda: gym.make("MAPFFrozenLake-v0", config=HARD)]), two(0.2))
    for env in (alone, vector):
        if when == "after it":
            env.reset(seed=0)
        env.curriculum.load_state_dict(state)
        env.reset(seed=0)
        assert env.get_config() == env.curriculum.config == two(0.1).config


@pytest.mark.parametrize("mode", AutoresetMode)
def test_episodes_begun_on_the_rung_before_say_nothing_of_the_next(mode):
    ladder = Ladder(range(5), threshold=1.0, window=4)
    envs, ended = play_rungs(ladder, mode)
    assert sum(episodes.count(0) for episodes in ended) >= 30  # each copy's first, many more than the rungs need
    assert (ladder.rung, envs.get_config()) == (1, 1)


def test_ends_may_be_told_as_zeros_and_ones():
    class Numbers(gym.vector.VectorWrapper):
        def step(self, actions):
            observations, rewards, terminated, truncated, infos = self.env.step(actions)
            return observations, rewards, terminated.astype(np.uint8), truncated.astype(np.uint8), infos

    ladder = Ladder(range(5), threshold=1.0, window=4)
    envs = SyncVectorEnv([partial(Rung, 1 + copy % 6) for copy in range(30)], autoreset_mode=AutoresetMode.DISABLED)
    envs = CurriculumVectorEnv(Numbers(envs), ladder)
    over = None
    for _ in range(40):
        if over is None or over.any():
            envs.reset(options=None if over is None else {"reset_mask": over})
        *_, terminated, _, _ = envs.step(np.zeros(30, int))
        over = terminated.astype(bool)
    assert ladder.rung == 1


@pytest.mark.parametrize("mode", AutoresetMode)
def test_every_episode_begun_with_the_config_in_force_is_heard_of(mode):
    heard = []

    def after_two(success):
        heard.append(success)
        return 1 if len(heard) == 2 else None

    _, ended = play_rungs(after_two, mode)
    swap = next(step for step in range(len(ended)) if sum(map(len, ended[: step + 1])) >= 2)
    before = sum(map(len, ended[: swap + 1]))  # all that end in the swap's own step belong to the old config
    assert heard == [True] * before + [False] * sum(episodes.count(1) for episodes in ended)


def test_a_copy_that_is_reset_by_hand_has_no_old_episode_to_end():
    heard = []
    copies = [Rung(3), Rung(3)]
    envs = SyncVectorEnv([lambda copy=copy: copy for copy in copies])
    envs = CurriculumVectorEnv(envs, heard.append)
    envs.reset()
    envs.set_config(1)
    envs.reset()
    for _ in range(3):
        envs.step([0, 0])
    assert heard == [False, False]


def test_parallel_form():
    env = CurriculumParallelEnv(mfl.parallel_env(config=EASY, **ROOM))
    env.reset(seed=0)
    assert env.agents == ["agent_0"]
    env.set_config(HARD)
    assert env.unwrapped.get_config() == EASY
    while env.agents:
        env.step(dict.fromkeys(env.agents, 4))
    env.reset()
    assert env.agents == ["agent_0", "agent_1"]
    assert env.get_config() == HARD


def test_parallel_ladder():
    start = mfl.Instance(holes=np.zeros((2, 2), bool), starts=[[0, 0]], goals=[[0, 1]])
    env = CurriculumParallelEnv(mfl.parallel_env(config=EASY, **ROOM), Ladder([EASY, HARD], threshold=1.0, window=1))
    env.reset(seed=0, options={"instance": start})
    env.step({"agent_0": mfl.Action.RIGHT})
    env.reset()
    assert env.get_config() == HARD


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_parallel_form_keeps_pettingzoos_rules():
    parallel_api_test(CurriculumParallelEnv(mfl.parallel_env(config=HARD, **ROOM)), num_cycles=50)


def test_a_config_is_applied_at_the_next_reset_and_once():
    applied = []
    env = CurriculumEnv(Counter(), apply=lambda env, config: applied.append(config))
    env.reset()
    env.set_config(3)
    env.set_config(4)  # the later one counts
    assert (applied, env.get_config()) == ([], None)
    for _ in range(3):
        env.reset()
        assert (applied, env.get_config()) == ([4], 4)


class Vector(gym.vector.VectorEnv):
    """Three copies whose episodes end after one step, with the infos that it is given."""

    def __init__(self, infos):
        self.num_envs, self.infos = 3, infos
        self.single_observation_space = self.single_action_space = gym.spaces.Discrete(2)
        self.observation_space = self.action_space = gym.spaces.MultiDiscrete([2, 2, 2])

    def step(self, actions):
        ended = np.array([True, True, False])
        return np.zeros(3), np.array([1.0, 0.0, 1.0]), ended, np.zeros(3, bool), self.infos


@pytest.mark.parametrize(
    ("infos", "heard"),
    [
        ({}, [True, False]),  # by the rewards of those that ended
        ({"success": np.array([False, True, True])}, [False, True]),
        ({"success": np.array([False, True, True]), "_success": np.array([True, True, True])}, [False, True]),
        ({"success": np.array([False, True, True]), "_success": np.array([False, False, True])}, [True, False]),
        ({"success": np.array([False, True, True]), "_success": np.array([False, True, True])}, [True, True]),
        ({"final_info": {"is_success": np.array([False, True, True])}}, [False, True]),
        ({"success": None, "is_success": np.array([False, True, True])}, [False, True]),
        ({"success": np.ones(3, bool), "valid": np.array([False, True, True])}, [False, True]),  # as a lake
        (
            {"success": np.ones(3, bool), "valid": np.zeros(3, bool), "_valid": np.array([True, False, False])},
            [False, True],  # the second copy is no lake
        ),
        (
            # An environment that tells successes alone, and in every step whether the action was legal.
            {
                "success": np.ones(3, bool),
                "_success": np.array([True, False, False]),
                "valid": np.array([True, True, False]),
            },
            [True, False],
        ),
        ({"is_success": np.ones(3, bool), "valid": np.zeros(3, bool)}, [True, True]),  # no lake: a user's own entry
    ],
)
def test_a_copys_success_is_what_its_own_info_says_where_the_mask_says_that_it_is_its_own(infos, heard):
    told = []
    envs = CurriculumVectorEnv(Vector(infos), curriculum=lambda success: told.append(success))
    envs.step(np.zeros(3))
    assert told == heard


@pytest.mark.parametrize(
    ("mask", "heard"),
    [
        ([True, True, False], [("3", False, 0.5), ("4", True, 1.0)]),
        ([False, True, False], [("all", True, 1.0), ("4", True, 1.0)]),  # the first has only its reward
    ],
)
@pytest.mark.parametrize("shared", [True, False])
def test_columns_under_one_mask_say_what_they_say_under_masks_of_their_own(mask, heard, shared):
    columns = {
        "success": np.array([False, True, True]),
        "score": np.array([0.5, 1.0, 1.0]),
        "slice": np.array(["3", "4", "5"], object),
    }
    one = np.array(mask)
    told = []

    class Hears(Ladder):
        def observe(self, outcome):
            told.append(outcome[:3])

    masks = {f"_{key}": one if shared else one.copy() for key in columns}
    CurriculumVectorEnv(Vector(columns | masks), Hears([None, None])).step(np.zeros(3))
    assert told == heard


class Nested(Rung):
    """Its last info has a mapping, as Gymnasium's ``RecordEpisodeStatistics`` adds one."""

    def step(self, action):
        *rest, info = super().step(action)
        return *rest, info | {"where": {"place": f"length {self.length}", 3: {}}} if info else info


@pytest.mark.parametrize("mode", AutoresetMode)
def test_slice_of_reads_what_an_info_has_within_a_mapping(mode):
    told = []

    class Hears(Ladder):
        def observe(self, outcome):
            told.append(outcome.slice)

    envs = SyncVectorEnv([partial(Nested, 1), partial(Nested, 2)], autoreset_mode=mode)
    envs = gym.wrappers.vector.RecordEpisodeStatistics(envs)

    def slice_of(info):
        if mode != AutoresetMode.SAME_STEP:  # where a copy is reset at once, its last info has no statistics
            assert np.ndim(info["episode"]["l"]) == 0
        return info["where"]["place"]

    envs = CurriculumVectorEnv(envs, Hears([0]), slice_of=slice_of)
    envs.reset(seed=0)
    *_, terminated, _, _ = envs.step(np.zeros(2, int))
    if mode == AutoresetMode.DISABLED:
        envs.reset(options={"reset_mask": terminated})
    envs.step(np.zeros(2, int))
    assert set(told) == {"length 1", "length 2"}


@pytest.mark.parametrize(
    ("infos", "success"),
    [([{}, {}], False), ([{"success": True}, {}], False), ([{"success": True}, {"success": True}], True)],
)
def test_a_parallel_episode_is_a_success_when_every_agents_is(infos, success):
    class Pair:
        possible_agents = agents = ("a", "b")
        render_mode = None
        metadata = {}  # noqa: RUF012

        def observation_space(self, agent):
            return gym.spaces.Discrete(2)

        action_space = observation_space

        def step(self, actions):
            self.agents = ()
            both = dict.fromkeys("ab", True)
            return {}, {"a": 1.0, "b": 0.0}, both, dict.fromkeys("ab", False), dict(zip("ab", infos))

    told = []
    CurriculumParallelEnv(Pair(), lambda success: told.append(success)).step({})
    assert told == [success]


class Leavers:
    """Agents that leave one by one, each in its step, with its reward."""

    possible_agents = ("a", "b", "c")
    render_mode = None
    metadata = {}  # noqa: RUF012

    def __init__(self, rewards):
        self.paid = rewards

    def observation_space(self, agent):
        return gym.spaces.Discrete(2)

    action_space = observation_space

    def reset(self, seed=None, options=None):
        self.agents = list(self.possible_agents)
        return {}, {}

    def step(self, actions):
        leaving, staying = self.agents[0], self.agents[1:]
        over = {agent: agent == leaving for agent in self.agents}
        rewards = {agent: self.paid[agent] if agent == leaving else 0.0 for agent in self.agents}
        self.agents = staying
        return {}, rewards, over, dict.fromkeys(over, False), {agent: {} for agent in over}


def test_agents_that_left_early_count_as_those_that_stayed_to_the_end():
    told = []
    inner = Leavers({})
    env = CurriculumParallelEnv(inner, told.append)
    for fails in ("a", "b", "c", None, "a"):
        inner.paid = {agent: float(agent != fails) for agent in inner.possible_agents}
        env.reset()
        for _ in inner.possible_agents:
            env.step({})
    assert told == [False, False, False, True, False]


def test_environments_that_share_a_ladder_climb_together():
    ladder = Ladder([2, 3, 4], threshold=1.0, window=2)
    envs = [CurriculumEnv(Counter(), curriculum=ladder, apply=set_length) for _ in range(4)]
    lengths = []
    for _ in range(3):
        for env in envs:
            env.reset()
        lengths.append([env.unwrapped.length for env in envs])
        for env in envs:  # of four episodes on a rung two are heard of: the others began before it was left
            while not env.step(1)[2]:
                pass
    assert (lengths, ladder.rung) == ([[2] * 4, [3] * 4, [4] * 4], 2)


def test_a_config_that_is_set_by_hand_comes_before_a_shared_ladders():
    ladder = Ladder([2, 3, 4], threshold=1.0, window=1)
    climbs, by_hand = (CurriculumEnv(Counter(), curriculum=ladder, apply=set_length) for _ in range(2))
    by_hand.reset()
    climbs.reset()
    by_hand.set_config(9)
    while not climbs.step(1)[2]:
        pass
    for _ in range(2):
        by_hand.reset()
        assert by_hand.unwrapped.length == 9


BUMPED = mfl.Instance(holes=np.zeros((2, 2), bool), starts=[[0, 0]], goals=[[0, 1]])
NATIVE = ("gymnasium", "vector", "parallel")


def one_move(env, move):
    return dict.fromkeys(env.agents, move) if hasattr(env, "agents") else np.full(env.action_space.shape, move)


@pytest.mark.parametrize("interface", NATIVE)
def test_a_curriculum_hears_of_what_success_key_names(interface):
    wrapper, make = INTERFACES[interface]
    heard = {}
    for key in (None, "success", "valid"):
        told = []
        env = wrapper(make(**ROOM), told.append, success_key=key)
        env.reset(seed=0, options={"instance": BUMPED})
        for move in (mfl.Action.UP, mfl.Action.RIGHT):  # off the board, then to the goal
            env.step(one_move(env, move))
        heard[key] = set(told)
    assert heard == {None: {False}, "success": {True}, "valid": {False}}  # without a key as the suites count


@pytest.mark.parametrize("interface", NATIVE)
def test_a_success_key_that_no_info_has_is_refused(interface):
    wrapper, make = INTERFACES[interface]
    env = wrapper(make(**ROOM), lambda success: None, success_key="solved")
    env.reset(seed=0, options={"instance": BUMPED})
    with pytest.raises(ValueError, match=r"'solved'.*'valid'"):
        env.step(one_move(env, mfl.Action.RIGHT))


WRAPPERS = {
    CurriculumEnv: Counter,
    CurriculumVectorEnv: lambda: SyncVectorEnv([Counter]),
    CurriculumParallelEnv: mfl.parallel_env,
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("wrapped_by", WRAPPERS)
def test_each_form_of_an_environment_has_a_wrapper_of_its_own(wrapper, wrapped_by):
    env = WRAPPERS[wrapped_by]()
    if wrapper is wrapped_by:
        wrapper(env, apply=lambda env, config: None)
        return
    said = f"^{wrapper.__name__} does not wrap a {type(env).__name__}: use CurriculumEnv for a gymnasium.Env, "
    with pytest.raises(TypeError, match=said):
        wrapper(env, apply=lambda env, config: None)


@pytest.mark.parametrize("interface", ["environment", "vector", "pettingzoo"])
def test_a_wrapper_refuses_a_curriculum_that_counts_the_iterations_of_a_trainer(interface):
    wrap = {
        "environment": lambda one: CurriculumEnv(gym.make("MAPFFrozenLake-v0", config=EASY), one),
        "vector": lambda one: CurriculumVectorEnv(gym.make_vec("MAPFFrozenLake-v0", num_envs=2, config=EASY), one),
        "pettingzoo": lambda one: CurriculumParallelEnv(mfl.parallel_env(config=EASY), one),
    }[interface]
    with pytest.raises(SpecError, match=r"unit='iterations' is not counted here, .* give unit='episodes' or 'steps'"):
        wrap(EngineerCurriculum("rules", EASY, target=EASY, unit="iterations"))
    wrap(EngineerCurriculum("rules", EASY, target=EASY, unit="steps"))


def test_wrappers_within_each_other_do_not_share_a_curriculum():
    """Each episode would count twice. Beside each other they may share it."""
    ladder = Ladder([2, 3])
    copies = SyncVectorEnv([lambda: CurriculumEnv(Counter(), ladder, apply=set_length)] * 2)
    with pytest.raises(
        SpecError, match="would count twice, as a CurriculumEnv below has the same Ladder: give it to one"
    ):
        CurriculumVectorEnv(copies, ladder, apply=set_length)
    CurriculumVectorEnv(copies, Ladder([2, 3]), apply=set_length)
    with pytest.raises(SpecError, match="would count twice"):
        CurriculumEnv(copies.envs[0], ladder, apply=set_length)


LAKES = {
    CurriculumEnv: lambda: gym.make("MAPFFrozenLake-v0", config=EASY),
    CurriculumVectorEnv: lambda: gym.make_vec("MAPFFrozenLake-v0", num_envs=2, config=EASY),
    CurriculumParallelEnv: lambda: mfl.parallel_env(config=EASY),
}


@pytest.mark.parametrize("wrapper", LAKES)
def test_the_last_environment_that_is_closed_tells_of_an_engineer_that_was_never_asked(wrapper):
    curriculum = EngineerCurriculum("rules", EASY, every=1_000)
    one, other, plain = (wrapper(LAKES[wrapper](), given) for given in (curriculum, curriculum, None))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wrapper(LAKES[wrapper](), curriculum).close()  # nobody has trained in it
        for env in (one, other, plain):
            env.reset(seed=0)
        plain.close()
        one.close()
        one.close()
    with pytest.warns(UserWarning, match="training ended, .* the engineer was never asked") as told:
        other.close()
    assert len(told) == 1
