# /// script
# dependencies = ["tianshou"]
# [tool.client]
# title = "Tianshou"
# how = "`gym.make(…, discrete=True)`; several agents: `PettingZooEnv(mapf_frozenlake_v0.env())`, masks included; `fixed_roster=True` where crowds vary"
# ///
"""Tianshou collects, trains DQN, and plays its multi-agent form with masks."""

import gymnasium as gym
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.multiagent.marl import MultiAgentOffPolicyAlgorithm
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.algorithm.random import MARLRandomDiscreteMaskedOffPolicyAlgorithm
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv, PettingZooEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

from mapf_frozenlake import mapf_frozenlake_v0

PACKAGES = ["tianshou", "torch"]


def check_dqn():
    """DQN trains on one agent"""
    kwargs = {"size": 3, "num_agents": 1, "discrete": True, "flat": True, "reward": "shaped"}
    envs = DummyVectorEnv([lambda: gym.make("MAPFFrozenLake-v0", **kwargs) for _ in range(2)])
    one = gym.make("MAPFFrozenLake-v0", **kwargs)
    network = Net(state_shape=one.observation_space.shape, action_shape=5, hidden_sizes=(16,))
    policy = DiscreteQLearningPolicy(model=network, action_space=one.action_space, eps_training=0.3)
    algorithm = DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3), target_update_freq=10)
    collector = Collector(algorithm, envs, VectorReplayBuffer(500, 2), exploration_noise=True)
    trained = algorithm.run_training(
        OffPolicyTrainerParams(
            training_collector=collector, max_epochs=1, epoch_num_steps=200, collection_step_num_env_steps=50,
            batch_size=32, show_progress=False, verbose=False,
        )
    )  # fmt: skip
    assert trained.train_step >= 200


def check_agents_with_masks():
    """`PettingZooEnv`: agents in turn, masked, also of a crowd that varies"""
    for kwargs in ({"num_agents": 2}, {"num_agents": {1: 1, 3: 1}, "fixed_roster": True}):
        env = PettingZooEnv(mapf_frozenlake_v0.env(size=3, **kwargs))
        players = [MARLRandomDiscreteMaskedOffPolicyAlgorithm(action_space=env.action_space) for _ in env.agents]
        both = MultiAgentOffPolicyAlgorithm(algorithms=players, env=env)
        lakes = DummyVectorEnv([lambda kwargs=kwargs: PettingZooEnv(mapf_frozenlake_v0.env(size=3, **kwargs))] * 2)
        collected = Collector(both, lakes).collect(n_episode=6, reset_before_collect=True)
        assert collected.n_collected_episodes == 6


if __name__ == "__main__":
    import _checks

    _checks.run(globals())
