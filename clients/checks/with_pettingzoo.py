# /// script
# dependencies = ["pettingzoo"]
# [tool.client]
# title = "PettingZoo"
# quick = true
# how = "`mfl.parallel_env()`, `mapf_frozenlake_v0.env()`"
# ///
"""PettingZoo's own tests."""

from functools import partial

from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test

from mapf_frozenlake import mapf_frozenlake_v0

PACKAGES = ["pettingzoo"]
FORMS = [
    {},
    {"action_mask": "info"},
    {"action_mask": None, "state": "compact"},
    {"num_agents": {1: 1, 3: 1}},
    {"num_agents": {1: 1, 3: 1}, "fixed_roster": True},
    {"observation": "compact", "max_cycles": 20},
]


def check_parallel():
    """`parallel_api_test`, `parallel_seed_test`, with each kind of mask, crowd and state"""
    for kwargs in FORMS:
        parallel_api_test(mapf_frozenlake_v0.parallel_env(**kwargs), num_cycles=200)
        parallel_seed_test(partial(mapf_frozenlake_v0.parallel_env, **kwargs))


def check_aec():
    """`api_test`, `seed_test` of the agent-by-agent form"""
    for kwargs in FORMS:
        api_test(mapf_frozenlake_v0.env(**kwargs), num_cycles=200)
        seed_test(partial(mapf_frozenlake_v0.env, **kwargs), num_cycles=30)


if __name__ == "__main__":
    import _checks

    _checks.run(globals())
