"""A trainee does the same in every process, whatever the hashes of texts are there: no set decides an order.

The menu's trainee and GRPO, which need the benchmark and a model, are tested beside those.
"""

from __future__ import annotations

import pytest

from tests.envtuning.hash_seeded import assert_the_same, world

LAKES = {"num_agents": 2, "reward": "shaped", "slices": {3: {}, 4: {}}}
CORRIDORS = {"slices": {6: {}, 9: {}}}
PPO = {"num_envs": 4, "rollout": 32, "hidden": [16], "minibatch": 64}


@pytest.mark.parametrize(
    ("kind", "place", "config", "budget", "options"),
    [
        ("scripted", world("lakes"), LAKES, 500, {}),
        ("ppo", world("lakes"), LAKES, 600, PPO),
        ("sb3", world("gym_worlds:CorridorWorld"), CORRIDORS, 500, {"num_envs": 2, "n_steps": 32, "n_epochs": 2}),
        ("sb3", world("gym_worlds:CorridorWorld"), CORRIDORS, 300, {"algorithm": "DQN", "learning_starts": 50}),
    ],
    ids=["scripted", "ppo", "sb3", "sb3 DQN"],
)  # fmt: skip
def test_a_trainee_ends_the_same_under_another_hash_seed(kind, place, config, budget, options):
    assert_the_same(kind, place, config, budget, options)


@pytest.mark.ray
@pytest.mark.slow
def test_rllibs_trainee_ends_the_same_under_another_hash_seed():
    pytest.importorskip("ray")
    assert_the_same("rllib", world("lakes"), LAKES, 600, PPO)
