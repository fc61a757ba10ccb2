"""The options of the RLlib trainee, and RLlib's configuration from them."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from pydantic import Field
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from envtuning.curriculum.rllib_callback import RLlibCurriculumCallback
from envtuning.trainees.lakes.options import LakeOptions
from envtuning.trainees.rllib.module import LakeModule
from envtuning.trainees.rllib.ppo import LakePPO
from envtuning.trainees.rllib.runner import LakeEnvRunner
from mapf_frozenlake import LakeConfig
from mapf_frozenlake.types import NUM_ACTIONS
from mapf_frozenlake.world.layout import EgoLayout

LOOK_FOR_LOST = 2.0  # seconds in each iteration, while a runner is lost; a runner that is back answers at once


class RLlibOptions(LakeOptions):
    """``LakeOptions``, and the number of processes."""

    num_env_runners: int = Field(0, ge=0, description="Remote EnvRunners; 0: sample in this process.")
    num_learners: int = Field(0, ge=0, description="Remote Learners; 0: learn in this process.")
    cpus_per_env_runner: float = Field(1, ge=0, description="CPUs that Ray reserves for each remote EnvRunner.")
    cpus_per_learner: float = Field(1, ge=0, description="CPUs that Ray reserves for each remote Learner.")
    gpus_per_learner: float = Field(0, ge=0, description="GPUs for each Learner.")
    sample_timeout: float = Field(120.0, gt=0, description="Seconds after which a remote EnvRunner counts as lost.")
    build_timeout: float = Field(
        300.0, gt=0, description="Seconds within which all remote EnvRunners must have started."
    )


def algorithm_config(options: RLlibOptions, lake_kwargs: dict[str, Any], seed: int) -> PPOConfig:
    """The AlgorithmConfig of ``LakePPO``: RLlib's PPO over ``LakeEnvRunner`` with ``LakeModule``."""
    spec = module_spec(options, lake_kwargs)
    first = LakeConfig.single(lake_kwargs["max_size"], num_agents=1)  # until the first stage's config arrives
    return (
        PPOConfig(algo_class=LakePPO)
        .environment(
            env="MAPFFrozenLake-v0",
            env_config=lake_kwargs | {"config": first, "options": options},
            observation_space=spec.observation_space,
            action_space=spec.action_space,
        )
        .env_runners(
            env_runner_cls=LakeEnvRunner,
            num_env_runners=options.num_env_runners,
            num_envs_per_env_runner=options.num_envs,
            num_cpus_per_env_runner=options.cpus_per_env_runner,
            rollout_fragment_length=options.rollout,
            sample_timeout_s=options.sample_timeout,
            validate_env_runners_after_construction=False,  # this could wait for ever; the trainee checks the runners itself
        )
        .learners(
            num_learners=options.num_learners,
            num_cpus_per_learner=options.cpus_per_learner,
            num_gpus_per_learner=options.gpus_per_learner,
        )
        .rl_module(rl_module_spec=spec)
        .training(
            lr=options.lr,
            gamma=options.gamma,
            lambda_=options.gae_lambda,
            clip_param=options.clip,
            entropy_coeff=options.entropy,
            vf_loss_coeff=options.value_weight,
            vf_clip_param=float("inf"),
            use_kl_loss=False,
            grad_clip=options.grad_clip,
            grad_clip_by="global_norm",
            train_batch_size_per_learner=(
                options.num_envs * options.rollout * max(1, options.num_env_runners) // max(1, options.num_learners)
            ),
            minibatch_size=options.minibatch,
            num_epochs=options.epochs,
        )
        .callbacks(RLlibCurriculumCallback)
        .fault_tolerance(restart_failed_env_runners=True, env_runner_health_probe_timeout_s=LOOK_FOR_LOST)
        .reporting(min_time_s_per_iteration=None, min_sample_timesteps_per_iteration=0)
        .debugging(seed=seed, log_level="ERROR")
    )


def module_spec(options: LakeOptions, env_kwargs: dict[str, Any]) -> RLModuleSpec:
    """How to build the network for these options and observations."""
    layout = EgoLayout(env_kwargs["window"], env_kwargs["hints"])
    return RLModuleSpec(
        module_class=LakeModule,
        observation_space=spaces.Box(-1.0, 1.0, (layout.size,), np.float32),
        action_space=spaces.Discrete(NUM_ACTIONS),
        model_config={"window": layout.window, "hints": layout.hints, "network": options.network},
    )
