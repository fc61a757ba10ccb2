# /// script
# dependencies = ["torch"]
# [tool.client]
# title = "CleanRL's loop"
# how = "[examples/own_cleanrl.py](../examples/own_cleanrl.py): `mfl.parallel_vec_env` where the script has `SyncVectorEnv`"
# ///
"""The single-file loop in CleanRL's manner: CleanRL is not a library, its scripts are copied and changed."""

import sys
from pathlib import Path

import gymnasium as gym
import numpy as np

import mapf_frozenlake as mfl

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
PACKAGES = ["torch"]


def check_the_example():
    """the example learns on `parallel_vec_env` and its engineer goes on to larger boards"""
    import own_cleanrl

    assert own_cleanrl.main(steps=250_000)["share/5"] > 0.5


def check_sync_vector_env():
    """the script's own lines: `SyncVectorEnv`, `RecordEpisodeStatistics`, single spaces, Discrete actions"""

    def make_env():
        return gym.wrappers.RecordEpisodeStatistics(
            gym.make("MAPFFrozenLake-v0", num_agents=1, discrete=True, flat=True)
        )

    envs = gym.vector.SyncVectorEnv([make_env] * 4, autoreset_mode=gym.vector.AutoresetMode.SAME_STEP)
    assert isinstance(envs.single_action_space, gym.spaces.Discrete)
    assert np.prod(envs.single_observation_space.shape) == envs.single_observation_space.shape[0]
    envs.reset(seed=1)
    finished = 0
    for _ in range(100):
        *_, infos = envs.step(envs.action_space.sample())
        finished += int(infos.get("_final_info", np.zeros(4, bool)).sum())
    assert finished > 0
    rows = mfl.parallel_vec_env(4, num_agents=2)
    assert rows.num_envs == 8


if __name__ == "__main__":
    import _checks

    _checks.run(globals())
