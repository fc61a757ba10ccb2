"""The default lake stays as it is, bit for bit: digests of what random agents see, get and do, stored before other modes came."""

from __future__ import annotations

import hashlib
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import mapf_frozenlake as mfl

NUM_ENVS, STEPS = 8, 160
# name -> (the config, the batch's arguments, digest of the episodes)
EPISODES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "default": ({}, {}, "e5dd982e26873a8a"),
    "window": ({"size": 8, "num_agents": 4, "collisions": "end"}, {"window": 5}, "b1346bd2aab52780"),
    "wide window": ({"size": 12, "num_agents": 20, "hole_ratio": 0.1}, {"certify": "reachable"}, "f8d8c29b45a13973"),
    "hints, slippery": (
        {"size": 6, "num_agents": {1: 1, 3: 2}, "is_slippery": True},
        {"hints": True},
        "6abc3e020118a4c8",
    ),
    "int8, shaped": (
        {"size": (3, 7), "num_agents": 2, "reward": "shaped"},
        {"dtype": "int8", "max_size": 9},
        "4ba38ca3d96c407e",
    ),
    "grid, progress": ({"size": 5, "num_agents": 3, "reward": "progress"}, {"observation": "grid"}, "6855302a87784c3b"),
    "compact, legal": ({"size": 5, "num_agents": 3, "reward": "legal"}, {"observation": "compact"}, "807baf404d44d7fc"),
    "same step": ({"size": 4, "num_agents": 2, "horizon": 7}, {"autoreset": "same_step"}, "6677dd80ca478532"),
}
# config -> (digest of the config, checksum of 64 boards)
BOARDS: dict[str, tuple[dict[str, Any], str, str]] = {
    "default": ({}, "5cddf534628e879d", "8e5d0f6e4cd2360b"),
    "waits": ({"size": 4, "num_agents": 3, "wait_ratio": 0.5}, "23e1edb91bbcab47", "28f066b370e2b153"),
    "far": ({"size": (5, 9), "num_agents": {1: 1, 2: 1}, "min_distance": 6}, "9b53a108e69fcdbe", "be230ad076992b97"),
    "crowd": ({"size": 16, "num_agents": 12, "hole_ratio": 0.1}, "7527b8226a6993cf", "eef52ceffe7ee024"),
}


def digest_of_episodes(config: mfl.LakeConfig, **kwargs: Any) -> str:
    batch = mfl.LakeBatch(config, NUM_ENVS, pool_size=256, **kwargs)
    batch.seed(np.arange(NUM_ENVS))
    seen = hashlib.sha256(batch.reset().tobytes())
    for actions in np.random.default_rng(0).integers(0, 5, (STEPS, NUM_ENVS, batch.max_agents)):
        result = batch.step(actions)
        for array in (*result, batch.positions, batch.goals, batch.team_reward, batch.action_masks()):
            seen.update(array.tobytes())
        if batch.num_ended:
            for array in (batch.success, batch.valid, batch.optimal):
                seen.update(array[result.terminated | result.truncated].tobytes())
    return seen.hexdigest()[:16]


@pytest.mark.parametrize("name", EPISODES)
def test_the_same_episodes_as_ever(name: str) -> None:
    config, kwargs, digest = EPISODES[name]
    assert digest_of_episodes(mfl.LakeConfig.single(**config), **kwargs) == digest


@pytest.mark.parametrize("name", BOARDS)
def test_the_same_boards_as_ever(name: str) -> None:
    fields, digest, checksum = BOARDS[name]
    config = mfl.LakeConfig.single(**fields)
    assert config.digest == digest
    assert mfl.generate(config, 64, seed=3).checksum[:16] == checksum


def test_a_single_env_plays_the_batch_of_one() -> None:
    env = gym.make("MAPFFrozenLake-v0", pool_size=256)
    batch = mfl.LakeBatch(pool_size=256, autoreset="next_step")
    batch.seed([5])
    np.testing.assert_array_equal(env.reset(seed=5)[0], batch.reset()[0])
    over = False
    for actions in np.random.default_rng(1).integers(0, 5, (STEPS, 2)):
        result = batch.step(actions[None])
        observation = env.reset()[0] if over else env.step(actions)[0]
        np.testing.assert_array_equal(observation, result.observation[0])
        over = bool(result.terminated[0] or result.truncated[0])
