# /// script
# dependencies = ["supersuit"]
# [tool.client]
# title = "SuperSuit"
# quick = true
# how = "`mfl.parallel_env(action_mask=None)`; crowds that vary: `fixed_roster=True`"
# ///
"""SuperSuit's wrappers, which take arrays and one crowd."""

import numpy as np
import supersuit as ss

import mapf_frozenlake as mfl

PACKAGES = ["supersuit", "pettingzoo"]


def lake(**kwargs):
    return mfl.parallel_env(**({"size": 4, "num_agents": 2, "action_mask": None} | kwargs))


def play(env, steps=30):
    env.reset(seed=0)
    for _ in range(steps):
        seen, *_ = env.step({agent: env.action_space(agent).sample() for agent in env.agents})
        for agent, one in seen.items():
            assert env.observation_space(agent).contains(one)
        if not env.agents:
            env.reset()


def check_wrappers():
    """frame stack, flatten, dtype, normalise, reshape, pad observations and actions, agent indicator, delay, sticky actions"""
    play(ss.frame_stack_v1(lake(), 3))
    play(ss.flatten_v0(lake(observation="grid")))
    play(ss.dtype_v0(lake(), np.float32))
    play(ss.normalize_obs_v0(lake()))
    play(ss.reshape_v0(lake(observation="grid"), (6 * 4, 4)))
    play(ss.pad_observations_v0(lake()))
    play(ss.pad_action_space_v0(lake()))
    play(ss.agent_indicator_v0(lake()))
    play(ss.delay_observations_v0(lake(), 2))
    play(ss.sticky_actions_v0(lake(), 0.2))


def check_vectorisation():
    """`pettingzoo_env_to_vec_env_v1` and `concat_vec_envs_v1`, also of a crowd that varies"""
    for kwargs in ({}, {"num_agents": {1: 1, 3: 1}, "fixed_roster": True}):
        env = lake(**kwargs)
        slots = len(env.possible_agents)
        envs = ss.concat_vec_envs_v1(ss.pettingzoo_env_to_vec_env_v1(env), 2, num_cpus=0, base_class="gymnasium")
        seen, _ = envs.reset(seed=0)
        assert len(seen) == 2 * slots
        for _ in range(60):
            seen, *_ = envs.step(np.random.default_rng(0).integers(0, 5, 2 * slots))
            assert seen.shape == (2 * slots, *env.observation_space("agent_0").shape)


if __name__ == "__main__":
    import _checks

    _checks.run(globals())
