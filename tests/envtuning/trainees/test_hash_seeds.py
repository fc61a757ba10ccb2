"""A trainee does the same in every process, whatever the hashes of texts are there: no set decides an order.

The menu's trainee and GRPO, which need the benchmark and a model, are tested beside those.
"""

from __future__ import annotations

import pytest

from tests.envtuning.hash_seeded import assert_the_same, world

LAKES = {"num_agents": 2, "reward": "shaped", "slices": {3: {}, 4: {}}}
CORRIDORS = {"slices": {6: {}, 9: {}}}
PPO = {"num_envs": 4, "rollout": 32, "hidden": [16], "minibatch": 64}


def test_trainees_end_the_same_under_another_hash_seed():
    corridors = world("gym_worlds:CorridorWorld")
    assert_the_same(
        ("scripted", world("lakes"), LAKES, 500, {}),
        ("ppo", world("lakes"), LAKES, 600, PPO),
        ("sb3", corridors, CORRIDORS, 500, {"num_envs": 2, "n_steps": 32, "n_epochs": 2}),
        ("sb3", corridors, CORRIDORS, 300, {"algorithm": "DQN", "learning_starts": 50}),
    )


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.prove  # two more Rays, for a trainee that shares PPO's boards, network and step
def test_rllibs_trainee_ends_the_same_under_another_hash_seed():
    pytest.importorskip("ray")
    assert_the_same(("rllib", world("lakes"), LAKES, 600, PPO))
