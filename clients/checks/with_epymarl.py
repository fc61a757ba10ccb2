# /// script
# dependencies = []
# [tool.client]
# title = "EPyMARL"
# how = '`env=gymma`, `key="mapf_frozenlake:MAPFFrozenLakeTuple-v0"`'
# source = "https://github.com/uoe-agents/epymarl"
# commit = "692b1f15f047fea0b370db1d389d1bb70f9bde69"
# ///
"""EPyMARL's Gymnasium wrapper, its own file: it is no package, so its checkout is given by CLIENT_SOURCE."""

import os
import sys
import types
from pathlib import Path

import _checks
import numpy as np

PACKAGES = ["gymnasium"]
VERSIONS = {"EPyMARL": _checks.commit_of(os.environ["CLIENT_SOURCE"])}


def gymma():
    """Its wrapper's module. Its siblings of other games are left out: each wants its game installed."""
    folder = Path(os.environ["CLIENT_SOURCE"]) / "src" / "envs"
    package = types.ModuleType("envs")
    package.__path__ = [str(folder)]
    sys.modules["envs"] = package
    sys.modules["envs.pretrained"] = types.ModuleType("envs.pretrained")
    for name in ("multiagentenv", "wrappers", "gymma"):
        _checks.module_at(f"envs.{name}", folder / f"{name}.py")
    return sys.modules["envs.gymma"]


def wrapped(common_reward):
    return gymma().GymmaWrapper(
        key="mapf_frozenlake:MAPFFrozenLakeTuple-v0", time_limit=20, pretrained_wrapper=None, seed=3,
        common_reward=common_reward, reward_scalarisation="mean", size=3, num_agents=2,
    )  # fmt: skip


def check_its_wrapper():
    """`GymmaWrapper` plays episodes to their success, with common and with separate rewards"""
    import mapf_frozenlake as mfl

    for common in (True, False):
        env = wrapped(common)
        assert (env.n_agents, env.get_total_actions()) == (2, 5)
        wins = 0
        for _ in range(10):
            seen, _ = env.reset()
            assert len(seen) == 2
            assert env.get_state().shape == (env.get_state_size(),)
            plan = mfl.solve(env._env.unwrapped.lake.instance).plan
            step, over = 0, False
            while not over:
                actions = [moves[step] if step < len(moves) else 4 for moves in plan]
                _, reward, terminated, truncated, info = env.step(actions)
                step, over = step + 1, terminated or truncated
            wins += float(np.mean(reward))
            assert info["success"]
        assert wins == 10


if __name__ == "__main__":
    _checks.run(globals())
