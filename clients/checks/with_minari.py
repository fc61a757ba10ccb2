# /// script
# dependencies = ["minari[hdf5,create]", "pillow"]
# [tool.client]
# title = "Minari"
# quick = true
# how = "`minari.DataCollector(gym.make(…))`; options and configs as JSON; infos left out, which is the default"
# ///
"""A Minari dataset of expert plans, written here and read back by another process."""

import os
import subprocess
import sys
import tempfile

import gymnasium as gym
import minari
import numpy as np

import mapf_frozenlake as mfl

PACKAGES = ["minari"]
READ_BACK = """
import minari, numpy as np, mapf_frozenlake as mfl
dataset = minari.load_dataset("lake/expert-v0")
env = dataset.recover_environment()
boards = mfl.generate(env.unwrapped.get_config(), 6, seed=1)
for episode, board in zip(dataset.iterate_episodes(), boards, strict=True):
    observation, _ = env.reset(options={"instance": board.to_json()})
    np.testing.assert_array_equal(episode.observations[0], observation)
    for action, seen, reward in zip(episode.actions, episode.observations[1:], episode.rewards):
        observation, paid, _, _, info = env.step(action)
        np.testing.assert_array_equal(seen, observation)
        assert paid == reward
    assert info["optimal"]
print(dataset.total_episodes)
"""


def check_expert_plans():
    """a dataset of expert plans: another process makes the environment again and replays it, number for number"""
    os.environ["MINARI_DATASETS_PATH"] = tempfile.mkdtemp()
    config = mfl.LakeConfig.single(4, 2, reward="shaped")
    env = minari.DataCollector(gym.make("MAPFFrozenLake-v0", config=config))
    for board in mfl.generate(config, 6, seed=1):
        env.reset(options={"instance": board.to_json()})
        plan = mfl.solve(board).plan
        for step in range(board.makespan):
            env.step(np.array([moves[step] if step < len(moves) else mfl.Action.WAIT for moves in plan]))
    env.create_dataset(
        dataset_id="lake/expert-v0", algorithm_name="exact solver", description="plans of least makespan"
    )
    printed = subprocess.run([sys.executable, "-c", READ_BACK], capture_output=True, text=True, check=True).stdout
    assert printed.split()[-1] == "6"


if __name__ == "__main__":
    import _checks

    _checks.run(globals())
