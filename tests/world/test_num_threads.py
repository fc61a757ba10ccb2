"""Any number of threads plays what one plays, bit for bit, in every interface; nobody waits for a thread that comes late."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mapf_frozenlake as mfl
from mapf_frozenlake import InstancePool, LakeBatch, LakeConfig, LakeError, generate, solve_batch
from mapf_frozenlake.world import turns

ID = "MAPFFrozenLake-v0"
COUNTS = (1, 2, 3, 5)


def batch_of(**kwargs: Any) -> Any:
    return LakeBatch(kwargs.pop("config"), kwargs.pop("num_envs"), **kwargs)


def vector_of(**kwargs: Any) -> Any:
    modes = {"next_step": "NextStep", "same_step": "SameStep"}
    return gym.make_vec(ID, autoreset_mode=modes[kwargs.pop("autoreset")], **kwargs)


def agents_of(**kwargs: Any) -> Any:
    modes = {"next_step": "NextStep", "same_step": "SameStep"}
    return mfl.parallel_vec_env(kwargs.pop("num_envs"), autoreset_mode=modes[kwargs.pop("autoreset")], **kwargs)


def sb3_of(**kwargs: Any) -> Any:
    pytest.importorskip("stable_baselines3", reason="needs Stable-Baselines3: pip install stable-baselines3")
    return mfl.sb3_vec_env(
        kwargs.pop("num_envs"), **{key: value for key, value in kwargs.items() if key != "autoreset"}
    )


INTERFACES: tuple[Callable[..., Any], ...] = (batch_of, vector_of, agents_of, sb3_of)
configs = st.builds(
    LakeConfig.single,
    st.integers(3, 6),
    st.sampled_from([{1: 1, 3: 1}, {2: 1}]),
    is_slippery=st.booleans(),
    collisions=st.sampled_from(["block", "end"]),
    horizon=st.integers(2, 9),
    reward=st.sampled_from(["sparse", "progress", "shaped", "legal"]),
)


def flat(said: Any) -> list[Any]:
    """Everything that a interface says, copied, in an order of its own; but for how many seconds an episode took."""
    if isinstance(said, dict):
        return [one for key in sorted(said) if key != "t" for one in (key, *flat(said[key]))]
    if isinstance(said, tuple | list):
        return [one for part in said for one in flat(part)]
    if isinstance(said, np.ndarray) and said.dtype == object:
        return flat(said.tolist())
    return [(said.dtype.str, said.shape, said.tobytes())] if isinstance(said, np.ndarray) else [said]


def play(
    interface: Callable[..., Any], num_threads: int, configs: list[LakeConfig], seed: int, **kwargs: Any
) -> list[Any]:
    """All that a interface says of resets, steps and masks while its config changes."""
    env = interface(
        config=configs[0],
        max_size=6,
        max_agents=3,
        pool_size=32,
        certify="reachable",
        num_threads=num_threads,
        **kwargs,
    )
    batch, rng, said = getattr(env, "unwrapped", env), np.random.default_rng(seed), []
    batch = getattr(getattr(batch, "lakes", batch), "batch", batch)
    env.seed(np.arange(batch.num_envs) + seed) if env is batch else env.seed(seed) if interface is sb3_of else None
    said += flat(env.reset() if env is batch or interface is sb3_of else env.reset(seed=seed))
    for config in configs:
        getattr(env, "unwrapped", env).set_config(config)
        for _ in range(8):
            actions = rng.integers(0, 5, (batch.num_envs, batch.max_agents))
            said += flat(env.step(actions.reshape(-1) if interface is agents_of else actions))
        said += flat([batch.action_masks(), batch.positions, batch.final_observation])
    if env is batch:
        said += flat(env.reset(rng.random(batch.num_envs) < 0.5))
    return said


@pytest.mark.parametrize("interface", INTERFACES)
@settings(max_examples=12)
@given(
    st.lists(configs, min_size=2, max_size=3),
    st.integers(0, 2**31),
    st.sampled_from([1, 2, 7, 150]),
    st.sampled_from(["next_step", "same_step"]),
    st.sampled_from(["ego", "grid", "compact", "pogema"]),
    st.booleans(),
)
def test_any_number_of_threads_plays_the_same(interface, configs, seed, num_envs, autoreset, observation, hints):
    given = {"num_envs": num_envs, "autoreset": autoreset, "observation": observation, "hints": hints}
    one = play(interface, 1, configs, seed, **given)
    for num_threads in COUNTS[1:]:
        assert play(interface, num_threads, configs, seed, **given) == one


def random_steps(batch: LakeBatch, count: int) -> list[Any]:
    batch.seed(np.arange(batch.num_envs))
    actions = np.random.default_rng(0).integers(0, 5, (count, batch.num_envs, batch.max_agents))
    return [flat(batch.reset()), *(flat(batch.step(joint)) for joint in actions)]


def make(num_threads: int, num_envs: int = 400) -> LakeBatch:
    config = LakeConfig.single(5, 3)
    return LakeBatch(config, num_envs, num_threads=num_threads, pool_size=64, autoreset="same_step", window=3)


def test_threads_that_all_begin_at_once_share_the_turns(monkeypatch):
    """However the system runs threads elsewhere: here all of them play."""
    ended: list[int] = []  # episodes, by call of a thread

    def all_at_once(work, num_threads, is_done):
        together = threading.Barrier(num_threads)
        members = [threading.Thread(target=lambda who=who: (together.wait(), work(who))) for who in range(num_threads)]
        for member in members:
            member.start()
        for member in members:
            member.join()
        assert is_done()

    expected, batch = random_steps(make(1, 20_000), 6), make(3, 20_000)
    step = batch._step_kernel

    def counted(*arguments):
        here = step(*arguments)
        ended.append(here)
        return here

    monkeypatch.setattr(turns, "in_turns", all_at_once)
    monkeypatch.setattr(batch, "_step_kernel", counted)
    assert random_steps(batch, 6) == expected
    assert sum(here > 0 for here in ended) > 6, "one thread did it all"


def come_late(monkeypatch) -> list[Callable[[int], object]]:
    """What other threads are asked to do, which they do as late as the test likes."""
    asked: list[Callable[[int], object]] = []

    def only_here(work, num_threads, is_done):
        asked.append(work)
        work(0)
        assert is_done()

    monkeypatch.setattr(turns, "in_turns", only_here)
    return asked


def test_a_thread_that_comes_late_finds_nothing_to_do(monkeypatch):
    asked, batch = come_late(monkeypatch), make(2)
    expected = random_steps(make(1), 20)
    assert random_steps(batch, 20) == expected
    before = flat([batch.observation, batch.positions, batch.events])
    for work in asked:
        work(1)
    assert flat([batch.observation, batch.positions, batch.events]) == before


def test_a_thread_that_comes_after_a_refusal_finds_nothing_to_do(monkeypatch):
    asked, batch = come_late(monkeypatch), make(2)
    batch.reset()
    actions = np.full((400, 3), 5)
    with pytest.raises(LakeError, match="action 5 of agent 0 in env 0"):
        batch.step(actions)
    actions[:] = 2
    before = batch.positions.copy()
    asked[-1](1)
    np.testing.assert_array_equal(batch.positions, before)
    batch.step(actions)
    assert (batch.positions != before).any()


def test_a_thread_that_comes_after_ctrl_c_finds_nothing_to_do(monkeypatch):
    batch, asked = make(2), []
    batch.reset()

    def interrupted(work, num_threads, is_done):
        asked.append(work)
        raise KeyboardInterrupt

    monkeypatch.setattr(turns, "in_turns", interrupted)
    before = batch.positions.copy()
    with pytest.raises(KeyboardInterrupt):
        batch.step(np.full((400, 3), 2))
    asked[-1](1)
    np.testing.assert_array_equal(batch.positions, before)


def test_observations_are_written_to_again_although_a_late_thread_holds_what_it_was_asked(monkeypatch):
    asked = come_late(monkeypatch)
    env = gym.make_vec(ID, num_envs=50, size=4, num_agents=2, num_threads=2).unwrapped
    env.reset(seed=0)
    arrays = {id(env.step(np.zeros((50, 2), np.int64))[0]) for _ in range(10)}
    assert len(asked) > 10
    assert len(arrays) <= 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_has_threads_of_its_own():
    batch, expected = make(3), random_steps(make(1), 5)
    assert random_steps(batch, 5) == expected
    child = os.fork()
    if child == 0:
        os._exit(0 if random_steps(batch, 5) == expected else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "2"])
@pytest.mark.parametrize(
    "call",
    [
        lambda wrong: LakeBatch(LakeConfig(), 2, num_threads=wrong),
        lambda wrong: gym.make_vec(ID, num_envs=2, num_threads=wrong),
        lambda wrong: generate(LakeConfig(), 1, num_threads=wrong),
        lambda wrong: solve_batch(generate(LakeConfig(), 1), num_threads=wrong),
        lambda wrong: InstancePool(LakeConfig(), num_threads=wrong),
    ],
)
def test_a_wrong_number_is_named(call, wrong):
    with pytest.raises(LakeError, match=f"num_threads={wrong!r}"):
        call(wrong)
