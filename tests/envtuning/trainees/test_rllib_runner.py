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
    runner = LakeEnvRunner(config=algorithm_config(options, ENV, seed=0), worker_index=0)
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


def test_rllib_is_told_what_the_network_says(runner):
    import torch

    rows = torch.rand(4, runner.env.layout.size)
    with torch.no_grad():
        logits, values = runner.module.policy_and_value(rows)
        told = runner.module._forward({"obs": rows})
        assert torch.equal(told["action_dist_inputs"], logits)
        for known in (told["embeddings"], None):
            assert torch.equal(runner.module.compute_values({"obs": rows}, known), values)


def test_seed_decides_everything(runner):
    def two_samples(seed):
        runner.begin(seed)
        return runner.sample(), runner.sample()

    first, again, other = two_samples(1), two_samples(1), two_samples(2)
    for one, same in zip(first, again, strict=True):
        for column in one:
            np.testing.assert_array_equal(one[column], same[column])
    assert not np.array_equal(first[0]["obs"][:100], other[0]["obs"][:100])


def test_masked_moves_are_never_made(runner):
    runner.begin(seed=4)
    batch = runner.sample()
    mask = runner.env.layout.action_mask(batch["obs"])
    assert (mask[np.arange(len(mask)), batch["actions"]] > 0).all()
    assert (mask == 0).any()


def test_knows_its_spaces(runner):
    from ray.rllib.core import DEFAULT_MODULE_ID

    observation, action = runner.get_spaces()[DEFAULT_MODULE_ID]
    assert observation.shape == (runner.env.layout.size,)
    assert action.n == mfl.types.NUM_ACTIONS


def test_what_the_options_say_is_what_rllib_is_told():
    from envtuning.trainees.lakes.options import LakeOptions
    from envtuning.trainees.rllib.options import RLlibOptions, algorithm_config

    own = {
        "num_env_runners": 0,
        "num_learners": 0,
        "cpus_per_env_runner": 1,
        "cpus_per_learner": 1,
        "gpus_per_learner": 0,
    }
    timeouts = {"sample_timeout": 120.0, "build_timeout": 300.0}
    assert RLlibOptions().model_dump() == LakeOptions().model_dump() | own | timeouts
    for name in own:
        assert getattr(RLlibOptions(**{name: 0}), name) == 0
        with pytest.raises(ValueError, match=name):
            RLlibOptions(**{name: -1})
    for name in timeouts:
        assert getattr(RLlibOptions(**{name: 0.5}), name) == 0.5
        with pytest.raises(ValueError, match=name):
            RLlibOptions(**{name: 0})
    options = RLlibOptions(
        num_envs=12, rollout=10, num_env_runners=3, num_learners=2, cpus_per_env_runner=0.5, cpus_per_learner=0.25,
        gpus_per_learner=0.125, sample_timeout=7.0, lr=0.01, gamma=0.9, gae_lambda=0.8, clip=0.3, entropy=0.02,
        value_weight=0.7, grad_clip=0.6, minibatch=64, epochs=5, hidden=(9,),
    )  # fmt: skip
    told = algorithm_config(options, ENV, seed=5)
    expected = {
        "num_env_runners": 3, "num_envs_per_env_runner": 12, "num_cpus_per_env_runner": 0.5, "rollout_fragment_length": 10,
        "sample_timeout_s": 7.0, "validate_env_runners_after_construction": False, "num_learners": 2,
        "num_cpus_per_learner": 0.25, "num_gpus_per_learner": 0.125, "lr": 0.01, "gamma": 0.9, "lambda_": 0.8,
        "clip_param": 0.3, "entropy_coeff": 0.02, "vf_loss_coeff": 0.7, "vf_clip_param": np.inf, "use_kl_loss": False,
        "grad_clip": 0.6, "grad_clip_by": "global_norm", "train_batch_size_per_learner": 12 * 10 * 3 // 2,
        "minibatch_size": 64, "num_epochs": 5, "restart_failed_env_runners": True, "env_runner_health_probe_timeout_s": 2.0,
        "min_time_s_per_iteration": None, "min_sample_timesteps_per_iteration": 0, "seed": 5, "log_level": "ERROR",
    }  # fmt: skip
    assert {name: getattr(told, name) for name in expected} == expected
    assert told.env_config["options"] is options
    assert told.env_config["config"] == mfl.LakeConfig.single(5, num_agents=1)
    assert told.rl_module_spec.model_config["network"]["hidden"] == (9,)
    assert told.rl_module_spec.observation_space.low.min() == -1.0
    assert told.rl_module_spec.observation_space.high.max() == 1.0
    alone = algorithm_config(RLlibOptions(num_envs=12, rollout=10), ENV, seed=5)
    assert alone.train_batch_size_per_learner == 120
