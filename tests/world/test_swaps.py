"""Given boards and new configs, on every interface."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import mapf_frozenlake as mfl
from mapf_frozenlake import GenerationError, Instance, LakeBatch, LakeConfig, LakeError, generate

LAKE = Instance(holes=np.zeros((3, 3), bool), starts=[(0, 0), (2, 2)], goals=[(0, 2), (2, 0)])
OTHER = Instance(holes=np.eye(3, dtype=bool), starts=[(0, 1)], goals=[(0, 2)])
KWARGS = {"size": 4, "num_agents": 2}


def interfaces() -> list:
    return [
        gym.make("MAPFFrozenLake-v0", **KWARGS),
        gym.make_vec("MAPFFrozenLake-v0", num_envs=3, **KWARGS),
        mfl.parallel_env(**KWARGS),
        mfl.parallel_vec_env(3, **KWARGS),
    ]


@pytest.mark.parametrize("env", interfaces(), ids=lambda env: type(env.unwrapped).__name__)
def test_a_given_instance_is_played_at_once_and_once(env) -> None:
    env.reset(seed=0, options={"instance": LAKE})
    batch = env.unwrapped.batch
    assert (batch.positions == LAKE.starts).all()
    assert (batch.goals == LAKE.goals).all()
    env.reset()
    assert batch.holes(0).shape == (4, 4)


@pytest.mark.parametrize("env", interfaces(), ids=lambda env: type(env.unwrapped).__name__)
def test_a_config_is_set_at_once_by_reset_and_later_by_set_config(env) -> None:
    small, smaller = LakeConfig.single(3, 1), LakeConfig.single(2, 1)
    batch = env.unwrapped.batch
    env.reset(seed=0, options={"config": small})
    assert batch.holes(0).shape == (3, 3)
    assert env.unwrapped.get_config() == small
    env.unwrapped.set_task(smaller.model_dump())  # RLlib sends what it can serialise
    assert batch.holes(0).shape == (3, 3)
    env.reset()
    assert batch.holes(0).shape == (2, 2)
    assert env.unwrapped.get_task() == smaller


@pytest.mark.parametrize("env", interfaces(), ids=lambda env: type(env.unwrapped).__name__)
def test_beyond_the_spaces_is_an_error_that_names_the_kwarg(env) -> None:
    env.reset(seed=0)
    before = env.unwrapped.get_config()
    with pytest.raises(LakeError, match="size 5 is beyond max_size=4"):
        env.unwrapped.set_config(LakeConfig.single(5, 2))
    with pytest.raises(LakeError, match="3 agents is beyond max_agents=2"):
        env.unwrapped.set_config(LakeConfig.single(4, 3))
    big = Instance(holes=np.zeros((3, 6), bool), starts=[(0, 0)], goals=[(0, 5)])
    with pytest.raises(LakeError, match="6 cells a side is beyond max_size=4"):
        env.reset(options={"instance": big})
    assert env.unwrapped.get_config() == before


def test_vector_envs_take_one_instance_each() -> None:
    envs = gym.make_vec("MAPFFrozenLake-v0", num_envs=3, **KWARGS)
    envs.reset(seed=0, options={"instance": [LAKE, OTHER, LAKE]})
    assert envs.unwrapped.batch.active.tolist() == [[True, True], [True, False], [True, True]]
    envs.reset(options={"instance": [OTHER], "reset_mask": np.array([True, False, False])})
    assert envs.unwrapped.batch.active.sum(axis=1).tolist() == [1, 1, 2]
    with pytest.raises(LakeError, match="2 instances for 3 envs"):
        envs.reset(options={"instance": [LAKE, OTHER]})


def test_desc_and_instance_are_played_in_every_episode() -> None:
    rows = ["SFFF", "FHFg", "FFFH", "HsFG"]
    env = gym.make("MAPFFrozenLake-v0", desc=rows)
    for seed in (0, None, None):
        env.reset(seed=seed)
        snapshot = env.unwrapped.snapshot()
        assert snapshot.positions.tolist() == [[0, 0], [3, 1]]
        assert snapshot.holes.sum() == 3
    envs = gym.make_vec("MAPFFrozenLake-v0", num_envs=2, instance=LAKE, horizon=2)
    envs.reset(seed=0)
    for _ in range(4):  # past an autoreset
        envs.step(np.full((2, 2), 4))
    assert (envs.unwrapped.batch.positions == LAKE.starts).all()


def test_spaces_hold_across_sizes_once_fixed() -> None:
    env = gym.make("MAPFFrozenLake-v0", size=3, num_agents=1, max_size=9, max_agents=4, window=7)
    shape = env.observation_space.shape
    for config in (LakeConfig.single(3, 1), LakeConfig.single(9, 4), LakeConfig.single(5, {1: 1, 2: 1})):
        observation, _ = env.reset(seed=1, options={"config": config})
        assert observation.shape == shape
        assert env.observation_space.contains(observation)


def test_a_config_fits_if_its_boards_can_be_drawn():
    """Of a batch that draws boards: one that always plays on the same board needs no others."""
    config, undrawable = LakeConfig.single(2, 1, hole_ratio=0.0), LakeConfig.single(2, 1, wait_ratio=0.5)
    LakeBatch(config).raise_unless_fits(config)
    with pytest.raises(GenerationError, match="an agent alone never needs to wait"):
        LakeBatch(config).raise_unless_fits(undrawable)
    with pytest.raises(GenerationError, match="exclude less"):
        LakeBatch(config, exclude=generate(config, 200)).raise_unless_fits(config)
    [board] = generate(config, 1)
    LakeBatch(config, instance=board).raise_unless_fits(undrawable)
