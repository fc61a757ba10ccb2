"""Every interface hands its renderer the episode as it happened."""

from __future__ import annotations

import pickle
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import mapf_frozenlake as mfl
from mapf_frozenlake.envs.show import Recorder

RIGHT, WAIT = 2, 4
LAKE = mfl.Instance(holes=np.zeros((2, 3), bool), starts=[(0, 0), (1, 0)], goals=[(0, 2), (1, 2)])


def test_single_env_renders_and_saves(tmp_path: Path) -> None:
    env = gym.make("MAPFFrozenLake-v0", instance=LAKE, render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    env.step(np.array([RIGHT, WAIT]))
    assert first.shape == env.render().shape
    assert (first != env.render()).any()
    path = tmp_path / "lake.svg"
    assert env.unwrapped.save_animation(str(path)) == path
    assert path.read_text().startswith("<svg")


def test_the_record_is_the_episodes_trail() -> None:
    env = gym.make("MAPFFrozenLake-v0", instance=LAKE, render_mode="ansi").unwrapped
    env.reset(seed=0)
    env.step(np.array([RIGHT, WAIT]))
    env.step(np.array([RIGHT, RIGHT]))
    frames = env._recorder.frames()
    assert [len(frame.trails) for frame in frames] == [1, 2, 3]
    last = frames[-1]
    assert last.trails[:, 0].tolist() == [[0, 0], [0, 1], [0, 2]]
    assert last.trails[:, 1].tolist() == [[1, 0], [1, 0], [1, 1]]
    assert last.actions.tolist() == [RIGHT, RIGHT]
    assert isinstance(env.render(), str)
    env.reset()
    assert len(env._recorder.snapshots) == 1


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_vector_envs_begin_a_new_record_at_each_reset(mode: str) -> None:
    envs = gym.make_vec(
        "MAPFFrozenLake-v0", num_envs=2, instance=LAKE, render_mode="ansi", horizon=2, autoreset_mode=mode
    )
    envs.reset(seed=0)
    lengths = []
    for _ in range(5):
        envs.step(np.full((2, 2), WAIT))
        lengths.append(len(envs.unwrapped._recorders[0].snapshots))
    assert lengths == ([2, 3, 1, 2, 3] if mode == "NextStep" else [2, 1, 2, 1, 2])
    assert [type(frame) for frame in envs.render()] == [str, str]


def test_parallel_env_renders() -> None:
    env = mfl.parallel_env(instance=LAKE, render_mode="ansi")
    env.reset(seed=0)
    before = env.render()
    env.step({"agent_0": RIGHT})
    assert env.render() != before


def test_a_long_record_takes_memory_in_proportion() -> None:
    recorder = Recorder("ansi")
    env = gym.make("MAPFFrozenLake-v0", instance=LAKE).unwrapped
    env.reset(seed=0)
    recorder.begin(env.snapshot())
    for _ in range(2000):
        recorder.add(env.snapshot())
    frames = recorder.frames()
    assert len(frames[-1].trails) == 2001
    assert all(np.shares_memory(frames[0].trails, frame.trails) for frame in frames)


def test_the_agents_batch_renders_its_lakes() -> None:
    envs = mfl.parallel_vec_env(3, instance=LAKE, render_mode="ansi")
    envs.reset(seed=0)
    assert [type(frame) for frame in envs.render()] == [str] * 3
    assert envs.render_mode == "ansi"


@pytest.mark.parametrize(
    "interface", [mfl.parallel_env, lambda **kwargs: gym.make("MAPFFrozenLake-v0", **kwargs).unwrapped]
)
def test_a_window_shows_one_lake_and_stays_with_its_process(interface, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = interface(instance=LAKE, render_mode="human")
    env.reset(seed=0)
    assert env.render() is None
    twin = pickle.loads(pickle.dumps(env))
    assert twin.render() is None
    for one in (env, twin):
        one.close()
    with pytest.raises(mfl.LakeError, match="render_mode='human': give one of 'ansi', 'rgb_array' or None"):
        gym.make_vec("MAPFFrozenLake-v0", num_envs=2, render_mode="human")
