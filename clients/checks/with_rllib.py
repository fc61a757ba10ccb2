# /// script
# dependencies = ["mapf-frozenlake[rllib]"]
# [tool.client]
# title = "RLlib"
# how = '`.environment("mapf_frozenlake:MAPFFrozenLake-v0", env_config={"flat": True})`; `register_lakes()` and its three names'
# ///
"""RLlib by plain id and by the three names, on a remote runner."""

import logging
import os

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

from envtuning.worlds.lakes.rllib_envs import register_lakes

PACKAGES = ["ray", "gymnasium"]
CROWD = {"size": 3, "window": 3, "num_agents": {1: 1.0, 2: 1.0}}


def train(name, env_config, multi_agent, **runners):
    config = (
        PPOConfig()
        .environment(name, env_config=env_config)
        .env_runners(num_env_runners=1, num_cpus_per_env_runner=0.5, num_envs_per_env_runner=2, **runners)
        .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[16]))
        .training(train_batch_size_per_learner=64, minibatch_size=32, num_epochs=1)
        .debugging(log_level="ERROR")
    )
    if multi_agent:
        config = config.multi_agent(policies={"shared"}, policy_mapping_fn=lambda agent, episode, **_: "shared")
    algorithm = config.build_algo()
    try:
        assert algorithm.train()["num_env_steps_sampled_lifetime"] > 0
    finally:
        algorithm.stop()


def check_plain_id():
    """by plain id with the module as its prefix, on a remote runner"""
    train("mapf_frozenlake:MAPFFrozenLake-v0", CROWD | {"flat": True}, multi_agent=False)


def check_lakes():
    """`lakes`, native vector"""
    train("lakes", CROWD, multi_agent=False, gym_env_vectorize_mode="vector_entry_point")


def check_lake_agents():
    """`lake-agents`, a crowd that varies"""
    train("lake-agents", CROWD, multi_agent=True)


def check_lake_pettingzoo():
    """`lake-pettingzoo`, a crowd that varies"""
    train("lake-pettingzoo", CROWD, multi_agent=True)


if __name__ == "__main__":
    import _checks

    logging.getLogger("ray.rllib").setLevel(logging.ERROR)
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=200 << 20, log_to_driver=False)
    register_lakes()
    _checks.run(globals())
