# /// script
# dependencies = ["gymnasium"]
# [tool.client]
# title = "Gymnasium"
# quick = true
# how = '`gym.make("MAPFFrozenLake-v0")`, `gym.make_vec`'
# ///
"""Gymnasium's own checker and vectorisation, on every id."""

import gymnasium as gym
import numpy as np
from gymnasium.utils.env_checker import check_env

import mapf_frozenlake

PACKAGES = ["gymnasium"]
IDS = [name for name in gym.registry if name.startswith("MAPFFrozenLake")]


def check_its_own_checker():
    """`check_env` on every id and observation, `flat` and `discrete`"""
    for name in IDS:
        check_env(gym.make(name).unwrapped, skip_render_check=True)
    for observation in ("ego", "grid", "compact"):
        for kwargs in ({}, {"flat": True}, {"flat": True, "discrete": True, "num_agents": 1}):
            check_env(
                gym.make("MAPFFrozenLake-v0", observation=observation, **kwargs).unwrapped, skip_render_check=True
            )


def check_vectorisation():
    """`SyncVectorEnv`, `AsyncVectorEnv` and `make_vec` play the same"""
    many = [
        gym.make_vec("MAPFFrozenLake-v0", num_envs=3, vectorization_mode=mode, size=4, horizon=9)
        for mode in ("sync", "async", "vector_entry_point")
    ]
    seen = [envs.reset(seed=1)[0] for envs in many]
    actions = np.random.default_rng(0).integers(0, 5, (40, 3, 2))
    for step in range(40):
        for other in seen[1:]:
            np.testing.assert_array_equal(seen[0], other)
        seen = [envs.step(actions[step])[0] for envs in many]
    for envs in many:
        envs.close()


def check_wrappers():
    """`RecordEpisodeStatistics`, `FlattenObservation`, `TimeLimit`, single and vector"""
    env = gym.make("MAPFFrozenLake-v0", size=3, max_episode_steps=5)
    env = gym.wrappers.RecordEpisodeStatistics(gym.wrappers.FlattenObservation(env))
    env.reset(seed=0)
    ended = False
    while not ended:
        *_, terminated, truncated, info = env.step(np.array([4, 4]))
        ended = terminated or truncated
    assert info["episode"]["l"] == 5
    envs = gym.make_vec("MAPFFrozenLake-v0", num_envs=4, size=3, horizon=5)
    envs = gym.wrappers.vector.RecordEpisodeStatistics(gym.wrappers.vector.FlattenObservation(envs))
    envs.reset(seed=0)
    for _ in range(5):
        info = envs.step(np.full((4, 2), 4))[4]
    assert (info["episode"]["l"] == 5).all()


if __name__ == "__main__":
    import _checks

    assert mapf_frozenlake.__version__
    _checks.run(globals())
