"""The native EnvRunner: what it reports is what the lakes did, and the seed decides it."""

from __future__ import annotations

import numpy as np
import pytest

import mapf_frozenlake as mfl
from tests.lazily import needed

needed("ray", "torch", extra="rllib")

pytestmark = pytest.mark.ray

MIXED = mfl.LakeConfig(
    slices={3: {"share": 0.5, "hole_ratio": 0.1}, 5: {"share": 0.5, "hole_ratio": 0.2}},
    num_agents={1: 0.5, 3: 0.5},
    reward="progress",
    collisions="end",
)
ENV = {"observation": "ego", "window": 5, "hints": False, "max_size": 5, "max_agents": 3}


@pytest.fixture(scope="module")
def runner(ray_session):
    from envtuning.trainees.rllib.options import RLlibOptions, algorithm_config
    from envtuning.trainees.rllib.runner import LakeEnvRunner

    options = RLlibOptions(num_envs=16, rollout=24)
    runner = LakeEnvRunner(config=algorithm_config(options, ENV, None, seed=0), worker_index=0)
    runner.env.set_config(MIXED)
    return runner


def test_replaying_its_actions_gives_its_rows_and_rewards(runner):
    runner.begin(seed=5)
    runner.sample()
    rollout = runner.sampler.rollout
    lakes = mfl.LakeBatch(MIXED, 16, **ENV)
    lakes.seed(np.random.SeedSequence([5, 0]).generate_state(16, np.uint32).astype(np.int64))
    observation = lakes.reset()
    for t in range(len(rollout)):
        np.testing.assert_array_equal(rollout.rows[t], observation)
        np.testing.assert_array_equal(rollout.active[t], lakes.active)
        step = lakes.step(rollout.actions[t])
        observation = step.observation
        np.testing.assert_array_equal(rollout.rewards[t], step.rewards.astype(np.float32))
        np.testing.assert_array_equal(rollout.terminated[t], step.terminated)
        np.testing.assert_array_equal(rollout.ended[t], step.terminated | step.truncated)


def test_values_and_chances_are_the_networks(runner):
    import torch

    runner.begin(seed=6)
    batch = runner.sample()
    with torch.no_grad():
        logits, _ = runner.module.policy_and_value(torch.from_numpy(batch["obs"]))
    np.testing.assert_allclose(batch["action_dist_inputs"], logits.numpy(), rtol=1e-4, atol=1e-4)
    chosen = torch.log_softmax(logits, dim=1).gather(1, torch.from_numpy(batch["actions"])[:, None])[:, 0]
    np.testing.assert_allclose(batch["action_logp"], chosen.numpy(), rtol=1e-4, atol=1e-4)


def test_seed_decides_everything(runner):
    def two_samples(seed):
        runner.begin(seed)
        return runner.sample(), runner.sample()

    first, again, other = two_samples(1), two_samples(1), two_samples(2)
    for one, same in zip(first, again, strict=True):
        for column in one:
            np.testing.assert_array_equal(one[column], same[column])
    assert not np.array_equal(first[0]["obs"][:100], other[0]["obs"][:100])


def test_counts_are_the_rollouts(runner):
    runner.begin(seed=3)
    runner.sample()
    rollout, outcomes = runner.sampler.rollout, runner.outcomes
    assert outcomes["env_steps"] == rollout.moved.sum()
    assert outcomes["episodes"] == rollout.ended.sum() > 0
    assert outcomes["valid"] <= outcomes["successes"] <= outcomes["episodes"]


def test_masked_moves_are_never_made(runner):
    runner.begin(seed=4)
    batch = runner.sample()
    mask = runner.env.layout.action_mask(batch["obs"])
    assert (mask[np.arange(len(mask)), batch["actions"]] > 0).all()
    assert (mask == 0).any()


def test_episodes_go_on_across_samples(runner):
    runner.begin(seed=9)
    runner.sample()
    last = runner.sampler.rollout.rows[-1].copy()
    runner.sample()
    np.testing.assert_array_equal(runner.sampler.rollout.rows[0], last)


def test_knows_its_spaces(runner):
    from ray.rllib.core import DEFAULT_MODULE_ID

    observation, action = runner.get_spaces()[DEFAULT_MODULE_ID]
    assert observation.shape == (runner.env.layout.size,)
    assert action.n == mfl.types.NUM_ACTIONS
