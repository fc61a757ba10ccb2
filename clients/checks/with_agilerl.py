# /// script
# dependencies = ["agilerl", "peft"]
# [tool.client]
# title = "AgileRL"
# how = '`mfl.parallel_env(action_mask="info")` for MADDPG and MATD3, `None` for IPPO; crowds that vary: `fixed_roster=True`'
# ///
"""AgileRL's multi-agent algorithms on its own vectorisation, masks from infos."""

import numpy as np
from agilerl.algorithms import IPPO, MADDPG, MATD3
from agilerl.training.train_multi_agent_on_policy import train_multi_agent_on_policy
from agilerl.vector import AsyncPettingZooVecEnv

import mapf_frozenlake as mfl

PACKAGES = ["agilerl", "torch"]
CROWDS = ({"num_agents": 2}, {"num_agents": {1: 1, 3: 1}, "fixed_roster": True})


def lake(**kwargs):
    return mfl.parallel_env(size=3, reward="shaped", **kwargs)


def learner(kind, env, **options):
    agents = env.possible_agents
    observations, actions = [env.observation_space(one) for one in agents], [env.action_space(one) for one in agents]
    return kind(observations, actions, agent_ids=agents, batch_size=16, net_config={"latent_dim": 16}, **options)


def check_ippo_trains():
    """IPPO trains on `AsyncPettingZooVecEnv`, also a crowd that varies (`action_mask=None`: its IPPO fails on masks of agents that share a network)"""
    for kwargs in CROWDS:
        envs = AsyncPettingZooVecEnv([lambda kwargs=kwargs: lake(action_mask=None, **kwargs)] * 2)
        try:
            algorithm = learner(IPPO, lake(action_mask=None, **kwargs), learn_step=16)
            trained, scores = train_multi_agent_on_policy(
                envs, "lake", "IPPO", [algorithm], max_steps=128, evo_steps=64, eval_steps=10, verbose=False
            )
            assert trained
            assert scores
        finally:
            envs.close()


def check_masks_are_obeyed():
    """MADDPG and MATD3 act by the masks in the infos (`action_mask="info"`)"""
    for kind in (MADDPG, MATD3):
        env = lake(action_mask="info", num_agents=2)
        algorithm = learner(kind, env)
        seen, infos = env.reset(seed=0)
        for _ in range(60):
            chosen = algorithm.get_action(seen, infos=infos)  # (actions, what the networks said)
            raw = {agent: int(np.asarray(action).reshape(-1)[0]) for agent, action in chosen[0].items()}
            for agent, action in raw.items():
                assert infos[agent]["action_mask"][action]
            seen, *_, infos = env.step(raw)
            if not env.agents:
                seen, infos = env.reset()


if __name__ == "__main__":
    import _checks

    _checks.run(globals())
