"""Every form hands its renderer the episode as it happened."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import mapf_frozenlake as mfl

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
    env.unwrapped.save_animation(str(path))
    assert path.read_text().startswith("<svg")


def test_the_record_is_the_episodes_trail() -> None:
    env = gym.make("MAPFFrozenLake-v0", instance=LAKE, render_mode="ansi").unwrapped
    env.reset(seed=0)
    env.step(np.array([RIGHT, WAIT]))
    env.step(np.array([RIGHT, RIGHT]))
    last = env._recorder.snapshots[-1]
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
