"""Every registered id, through every checker there is: API, determinism, pickling, vector equals singles."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test

import mapf_frozenlake as mfl
from mapf_frozenlake import mapf_frozenlake_v0
from mapf_frozenlake.envs.registration import NAMED, OTHER_FORMS

IDS = sorted(name for name in gym.registry if name.startswith("MAPFFrozenLake") and name not in OTHER_FORMS)
DOWN, RIGHT, UP, LEFT, WAIT = 1, 2, 3, 0, 4
OBSERVATIONS = ("ego", "grid", "compact", "pogema")


@pytest.fixture(autouse=True)
def _warnings_are_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # PettingZoo's convention for action masks is a dict; its own test excepts its own games' dicts by name.
        for message in ("Observation space for each agent probably", "Observation is not a NumPy array"):
            warnings.filterwarnings("ignore", message=message, category=UserWarning)
        yield


def test_every_named_size_is_registered() -> None:
    assert sorted(NAMED) == IDS
    assert "MAPFFrozenLake-v0" in IDS


def play(env: gym.Env, seed: int, steps: int = 60) -> list[Any]:
    """Everything that random actions from a seed bring about."""
    env.action_space.seed(seed)
    trace: list[Any] = [env.reset(seed=seed)]
    for _ in range(steps):
        trace.append(env.step(env.action_space.sample()))
        if trace[-1][2] or trace[-1][3]:
            trace.append(env.reset())
    return trace


def assert_same(one: Any, other: Any) -> None:
    np.testing.assert_equal(one, other)
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype


@pytest.mark.parametrize("observation", OBSERVATIONS)
@pytest.mark.parametrize("name", IDS)
def test_every_id(name: str, observation: str) -> None:
    kwargs = {"observation": observation, "pool_size": 512}
    env = gym.make(name, **kwargs)
    check_env(env.unwrapped, skip_render_check=True)

    first = play(env, seed=11)
    assert_same(first, play(env, seed=11))
    assert_same(first, play(gym.make(name, **kwargs), seed=11))

    twin = pickle.loads(pickle.dumps(env))
    for action in [env.action_space.sample() for _ in range(20)]:
        steps = env.step(action), twin.step(action)
        assert_same(*steps)
        if steps[0][2] or steps[0][3]:
            assert_same(env.reset(), twin.reset())

    for mode in AutoresetMode:
        assert_vector_equals_singles(name, kwargs, mode)


def assert_vector_equals_singles(name: str, kwargs: dict[str, Any], mode: AutoresetMode) -> None:
    n = 4
    ours = gym.make_vec(name, num_envs=n, autoreset_mode=mode, horizon=12, **kwargs)
    theirs = SyncVectorEnv([lambda: gym.make(name, horizon=12, **kwargs)] * n, autoreset_mode=mode)
    assert ours.metadata["autoreset_mode"] == mode
    assert ours.single_observation_space == theirs.single_observation_space
    assert ours.single_action_space == theirs.single_action_space
    assert_same(ours.reset(seed=5), theirs.reset(seed=5))
    theirs.action_space.seed(0)
    finished = 0
    for _ in range(40):
        actions = theirs.action_space.sample()
        left, right = ours.step(actions), theirs.step(actions)
        for one, other in zip(left[:4], right[:4]):
            assert_same(one, other)
        assert_same_infos(left[4], right[4])
        over = left[2] | left[3]
        finished += int(over.sum())
        if mode is AutoresetMode.DISABLED and over.any():
            both = ours.reset(options={"reset_mask": over}), theirs.reset(options={"reset_mask": over.copy()})
            assert_same(*both)
    assert finished > n


def assert_same_infos(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert ours.keys() == theirs.keys()
    for key, column in theirs.items():
        if isinstance(column, dict):
            assert_same_infos(ours[key], column)
        elif key == "final_obs":
            for one, other in zip(ours[key], column):
                assert_same(one, other)
        elif key == "optimal" and column.dtype == bool:  # the sync env casts None to False when it comes after a bool
            for one, other in zip(ours[key], column):
                assert bool(one) == other
        else:
            np.testing.assert_equal(ours[key], column)


@pytest.mark.parametrize("observation", OBSERVATIONS)
@pytest.mark.parametrize("name", IDS)
def test_pettingzoo_accepts_every_size(name: str, observation: str) -> None:
    def parallel(**extra: Any) -> Any:
        return mfl.parallel_env(observation=observation, pool_size=512, **NAMED[name], **extra)

    def aec(**extra: Any) -> Any:
        return mapf_frozenlake_v0.env(observation=observation, pool_size=512, **NAMED[name], **extra)

    parallel_api_test(parallel(), num_cycles=150)
    parallel_seed_test(parallel)
    api_test(aec(), num_cycles=150)
    seed_test(aec, num_cycles=30)
    api_test(mapf_frozenlake_v0.raw_env(observation=observation, **NAMED[name]), num_cycles=50)


def test_all_forms_play_the_same_episode() -> None:
    """Same seed, same actions: single, vector, agents' batch, parallel and AEC agree step for step."""
    kwargs = {"size": 5, "num_agents": 3, "reward": "progress", "is_slippery": True, "success_rate": 0.8}
    single, vector = gym.make("MAPFFrozenLake-v0", **kwargs), gym.make_vec("MAPFFrozenLake-v0", num_envs=2, **kwargs)
    agents, parallel = mfl.parallel_vec_env(2, **kwargs), mfl.parallel_env(**kwargs)
    aec = mapf_frozenlake_v0.env(**kwargs)
    rng = np.random.default_rng(0)
    observation, _ = single.reset(seed=9)
    np.testing.assert_array_equal(vector.reset(seed=9)[0][0], observation)
    np.testing.assert_array_equal(agents.reset(seed=9)[0][:3], observation)
    np.testing.assert_array_equal([seen["observation"] for seen in parallel.reset(seed=9)[0].values()], observation)
    aec.reset(seed=9)
    for _ in range(100):
        actions = rng.integers(0, 5, 3)
        both = np.stack([actions, rng.integers(0, 5, 3)])
        seen, reward, terminated, truncated, _ = single.step(actions)
        by_lake, by_agent = vector.step(both), agents.step(both.reshape(-1))
        by_name = parallel.step({f"agent_{i}": int(action) for i, action in enumerate(actions)})
        for action in actions:
            aec.step(int(action))
        np.testing.assert_array_equal(by_lake[0][0], seen)
        np.testing.assert_array_equal(by_agent[0][:3], seen)
        np.testing.assert_array_equal([one["observation"] for one in by_name[0].values()], seen)
        assert by_lake[1][0] == reward
        assert np.mean(by_agent[1][:3]) == pytest.approx(reward)
        assert list(by_name[1].values()) == by_agent[1][:3].tolist() == list(aec.rewards.values())
        for flags, flag in ((2, terminated), (3, truncated)):
            assert by_lake[flags][0] == flag
            assert (by_agent[flags][:3] == flag).all()
            assert set(by_name[flags].values()) == {flag}
        if terminated or truncated:
            return
    raise AssertionError("no episode ended")


def test_the_agents_batch_marks_empty_slots_and_fresh_rows() -> None:
    envs = mfl.parallel_vec_env(16, size=3, num_agents={1: 1, 2: 1}, horizon=3)
    observation, info = envs.reset(seed=0)
    assert observation.shape == (32, envs.batch.layout.size)
    assert envs.single_action_space == gym.spaces.Discrete(5)
    assert 16 <= info["active"].sum() < 32
    assert not observation[~info["active"]].any()
    assert (envs.action_masks()[~info["active"]] == [False, False, False, False, True]).all()
    ended = np.zeros(32, bool)
    for _ in range(6):  # three steps, the reset, two steps
        _, reward, terminated, truncated, info = envs.step(np.full(32, 4))
        np.testing.assert_array_equal(info["moved"], ~ended)
        assert not reward[~info["active"]].any()
        assert ended.all() or info["events"].shape == (32,)
        ended = terminated | truncated
    masked = np.zeros(32, bool)
    masked[5] = True
    envs.reset(seed=3, options={"reset_mask": masked})
    assert (envs.batch.step_count[2], envs.batch.step_count[0]) == (0, 2)


def test_parallel_agents_are_the_slots_an_episode_fills() -> None:
    env = mfl.parallel_env(size=4, num_agents={1: 1, 3: 1})
    crowds = set()
    for seed in range(20):
        env.reset(seed=seed)
        assert env.agents == env.possible_agents[: env.num_agents]
        crowds.add(env.num_agents)
        _, rewards, _, _, _ = env.step({})  # who says nothing waits
        assert rewards.keys() == set(env.possible_agents[: len(rewards)])
    assert crowds == {1, 3}


@pytest.mark.parametrize("flat", [False, True])
def test_observations_are_the_callers_to_keep(flat: bool) -> None:
    """Whatever is held, whole or a view of it, stays as it was; what is dropped is written to again."""
    envs = gym.make_vec("MAPFFrozenLake-v0", num_envs=3, size=4, num_agents=2, flat=flat)
    seen, _ = envs.reset(seed=0)
    held, copies, rows, addresses = [seen], [seen.copy()], [], set()
    for step in range(40):
        observation = envs.step(envs.action_space.sample())[0]
        if step < 12:
            held.append(observation)
            copies.append(observation.copy())
        elif step < 20:
            rows.append((observation[1, ..., :3], observation[1, ..., :3].copy()))
        else:
            addresses.add(observation.ctypes.data)
        del observation
    for one, copy in (*zip(held, copies), *rows):
        np.testing.assert_array_equal(one, copy)
    assert len(addresses) == 1, "an array that is dropped is the next to be written to"
    addresses.clear()
    for _ in range(8):
        observation = envs.step(envs.action_space.sample())[
            0
        ]  # the last one is held until this one is bound to its name
        addresses.add(observation.ctypes.data)
    assert len(addresses) == 2


def test_last_observations_are_the_callers_to_keep() -> None:
    envs = gym.make_vec(
        "MAPFFrozenLake-v0", num_envs=3, size=4, num_agents=2, horizon=2, autoreset_mode=AutoresetMode.SAME_STEP
    )
    envs.reset(seed=0)
    held, copies = [], []
    for _ in range(12):
        info = envs.step(envs.action_space.sample())[4]
        for last in info.get("final_obs", ()):
            if last is not None:
                held.append(last)
                copies.append(last.copy())
        del info
    assert len(held) > 12
    for one, copy in zip(held, copies):
        np.testing.assert_array_equal(one, copy)


def test_a_callers_scribbles_are_not_seen_again() -> None:
    envs = gym.make_vec("MAPFFrozenLake-v0", num_envs=3, size=4, num_agents=2, autoreset_mode=AutoresetMode.DISABLED)
    twin = gym.make_vec("MAPFFrozenLake-v0", num_envs=3, size=4, num_agents=2, autoreset_mode=AutoresetMode.DISABLED)
    seen, _ = envs.reset(seed=0)
    twin.reset(seed=0)
    seen[:] = 77
    one = np.array([True, False, False])
    np.testing.assert_array_equal(
        envs.reset(options={"reset_mask": one})[0], twin.reset(options={"reset_mask": one})[0]
    )
    with pytest.raises(ValueError, match="actions are 0 to 4"):
        envs.step(np.full((3, 2), 9))
    action = np.full((3, 2), 4)
    np.testing.assert_array_equal(envs.step(action)[0], twin.step(action)[0])
    copy = pickle.loads(pickle.dumps(envs))
    np.testing.assert_array_equal(copy.reset(seed=5)[0], envs.reset(seed=5)[0])


def test_lent_observations_are_the_batchs_own() -> None:
    lent = gym.make_vec("MAPFFrozenLake-v0", num_envs=3, size=4, num_agents=2, copy=False)
    assert lent.reset(seed=0)[0] is lent.unwrapped.batch.observation


@pytest.mark.parametrize("name", sorted(OTHER_FORMS))
def test_every_id_of_another_form(name: str) -> None:
    """Words, or a tuple for each agent: the same for the same seed, here, elsewhere, and after pickling."""
    env = gym.make(name)
    if not isinstance(env.action_space, gym.spaces.Tuple):  # the checker takes one number for a reward
        check_env(env.unwrapped, skip_render_check=True)
    first = play_twice(env)
    assert_same(play_twice(env), first)
    assert_same(play_twice(gym.make(name)), first)
    assert_same(play_twice(pickle.loads(pickle.dumps(env))), first)


def play_twice(env: gym.Env) -> list[Any]:
    """By random actions, and in words by replies that can be read."""
    seeded = play(env, seed=11)
    if not isinstance(env.action_space, gym.spaces.Text):
        return seeded
    rng = np.random.default_rng(3)
    seeded.append(env.reset(seed=12))
    for _ in range(20):
        moves = rng.choice(["LEFT", "DOWN", "RIGHT", "UP", "WAIT"], 8)
        env.reset(seed=int(rng.integers(1000)))
        seeded.append(env.step("\n".join(f"Agent {agent}: {' '.join(moves[4 * agent :][:4])}" for agent in range(2))))
    return seeded


def test_an_id_names_its_module_where_nobody_has_imported_it() -> None:
    """Gymnasium has no plugins since 1.0, so a bare id is unknown until the package is imported."""
    code = 'import gymnasium; gymnasium.make("mapf_frozenlake:MAPFFrozenLake-v0").reset(seed=0)'
    subprocess.run([sys.executable, "-c", code], check=True)


def test_events_have_the_names_of_their_codes() -> None:
    env = gym.make("MAPFFrozenLake-v0", desc=["SGF", "FFF"])
    env.reset(seed=0)
    events = env.step([3])[4]["events"]
    assert [mfl.Event(event).name for event in events] == ["OFF_BOARD"]
    names = {event.name: int(event) for event in mfl.Event}
    assert names == {"NONE": 0, "OFF_BOARD": 1, "VERTEX": 2, "SWAP": 3, "BLOCKED": 4, "HOLE": 5}


def test_no_id_is_left_out() -> None:
    registered = {name for name in gym.registry if name.startswith("MAPFFrozenLake")}
    assert registered == {*IDS, *OTHER_FORMS}


TWO_SIZES = {"slices": {3: {"share": 0.5}, 5: {"share": 0.5, "width": 4}}, "horizon": 5}


def test_every_last_info_names_the_slice_of_the_config() -> None:
    """And the ended episode's, even where the env has drawn the next one already."""
    told: list[set[str]] = []
    single = gym.make("MAPFFrozenLake-v0", config=TWO_SIZES, pool_size=16)
    pettingzoo = mfl.parallel_env(config=TWO_SIZES, pool_size=16)
    text = gym.make("MAPFFrozenLakeText-v0", mode="turns", config=TWO_SIZES, pool_size=16)
    plan = gym.make("MAPFFrozenLakeText-v0", config=TWO_SIZES, pool_size=16)
    for seed in range(8):
        single.reset(seed=seed)
        height = str(single.unwrapped.instance.height)
        infos = [single.step([4, 4])[4] for _ in range(5)]
        assert [info.get("slice") for info in infos] == [None, None, None, None, height]

        pettingzoo.reset(seed=seed)
        last = [pettingzoo.step({})[4] for _ in range(5)][-1]
        text.reset(seed=seed)
        plan.reset(seed=seed)
        turns = [text.step("WAIT")[4] for _ in range(5)][-1]
        told.append(
            {last["agent_0"]["slice"], last["agent_1"]["slice"], turns["slice"], plan.step("")[4]["slice"], height}
        )
    assert all(len(names) == 1 for names in told)
    assert {name for names in told for name in names} == {"3", "5"}


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_a_vector_names_the_slice_of_each_ended_episode(mode: AutoresetMode) -> None:
    envs = gym.make_vec("MAPFFrozenLake-v0", num_envs=32, config=TWO_SIZES, pool_size=16, autoreset_mode=mode)
    envs.reset(seed=0)
    heights = [str(one.height) for one in envs.unwrapped.instances]
    infos = [envs.step(np.full((32, 2), 4))[4] for _ in range(5)]
    last = infos[-1]["final_info"] if mode is AutoresetMode.SAME_STEP else infos[-1]
    assert list(last["slice"]) == heights
    assert set(heights) == {"3", "5"}
    assert last["_slice"].all()


@pytest.mark.parametrize(
    ("moves", "kind"),
    [
        ([[RIGHT, LEFT], [DOWN, WAIT]], "conflict"),  # the fall in the second step is not the first violation
        ([[UP, LEFT], [DOWN, WAIT]], "illegal_move"),
        ([[DOWN, UP]], "illegal_move"),  # in one step, moves off the board come before falls
        ([[DOWN, WAIT]], "hole"),
        ([[WAIT, WAIT]] * 4, "goal_missed"),
        ([[RIGHT, LEFT], [RIGHT, DOWN], [RIGHT, LEFT], [RIGHT, UP]], "conflict"),  # a success with a violation
        ([[RIGHT, DOWN], [RIGHT, LEFT], [RIGHT, UP]], None),
    ],
)
def test_the_last_info_has_the_kind_of_failure_that_the_judge_names(moves: list[list[int]], kind: str | None) -> None:
    board = mfl.from_desc(["SgsG", "HFFF"])
    env = gym.make("MAPFFrozenLake-v0", instance=board, horizon=4)
    env.reset(seed=0)
    steps = [env.step(np.array(joint)) for joint in moves]
    assert [one[2] or one[3] for one in steps] == [False] * (len(moves) - 1) + [True]
    assert all("failure" not in one[4] for one in steps[:-1])
    assert steps[-1][4]["failure"] == kind
    assert mfl.judge(board, np.array(moves).T.tolist()).failure == kind


def test_the_text_interface_names_the_kind_of_failure_too() -> None:
    board = mfl.from_desc(["SgsG", "HFFF"])
    for mode, reply, kind in (
        ("plan", "no plan", "parse_error"),
        ("plan", "Agent 1: D\nAgent 2: W", "hole"),
        ("turns", "no move", "parse_error"),
    ):
        env = gym.make("MAPFFrozenLakeText-v0", mode=mode, instance=board, horizon=1)
        env.reset(seed=0)
        assert env.step(reply)[4]["failure"] == kind


def test_boards_have_equal_hashes_exactly_if_they_are_equal() -> None:
    """Also across shapes and numbers of agents; what is known about a board is no part of it."""
    texts = (["SG", "FF"], ["SF", "GF"], ["SG", "FH"], ["SG", "HF"], ["GS", "FF"], ["SGF", "FFF"], ["SG", "FF", "FF"],
             ["SG", "sg"], ["SG", "gs"], ["Sg", "sG"])  # fmt: skip
    boards = [mfl.from_desc(text) for text in texts]
    batch = mfl.LakeBatch(mfl.LakeConfig.single(8, 4, horizon=1), len(boards), autoreset="disabled")
    hashes = []
    for given in (boards, [replace(board, makespan=None) for board in reversed(boards)]):
        batch.reset(instances=given)
        batch.step(np.full((len(boards), 4), WAIT))
        hashes.append(batch.board_hashes.tolist())
    assert hashes[0] == hashes[1][::-1]
    assert len(set(hashes[0])) == len(boards)


@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("autoreset", ["next_step", "same_step", "disabled"])
def test_an_ended_episode_has_the_hash_of_its_own_board(autoreset: str, num_threads: int) -> None:
    """In a pool of few boards, which come back, as on the same boards given; also after a change of the config and in a copy."""
    two_sizes = mfl.LakeConfig.model_validate(TWO_SIZES)
    options: dict[str, Any] = {"max_size": 5, "autoreset": autoreset, "num_threads": num_threads}
    batch = mfl.LakeBatch(two_sizes.model_copy(update={"horizon": 2}), 4, pool_size=3, **options)
    given = mfl.LakeBatch(two_sizes.model_copy(update={"horizon": 1}), 4, **options)
    wait = np.full((4, 2), WAIT)
    batch.seed(np.arange(4))
    batch.reset()
    seen = set()
    for k in range(8):
        if k == 4:
            batch.set_config(mfl.LakeConfig.single(4, 2, horizon=2))
        if k == 6:
            batch = pickle.loads(pickle.dumps(batch))
        boards = [batch.instance(env) for env in range(4)]
        for _ in range(2):
            batch.step(wait)
        given.reset(instances=boards)
        given.step(wait)
        assert batch.board_hashes.tolist() == given.board_hashes.tolist()
        seen |= set(batch.board_hashes.tolist())
        if autoreset == "next_step":
            batch.step(wait)
        elif autoreset == "disabled":
            batch.reset()
    assert len(seen) == 6


def test_an_episode_on_a_given_board_comes_from_no_slice() -> None:
    board = mfl.from_desc(["SG", "FF"])
    env = gym.make("MAPFFrozenLake-v0", config=TWO_SIZES, pool_size=16)
    env.reset(seed=0, options={"instance": board})
    info = env.step([2, 4])[4]
    assert info["success"]
    assert info["slice"] is None
    env = gym.make("MAPFFrozenLake-v0", instance=board)
    env.reset(seed=0)
    assert env.step([2])[4]["slice"] is None
