"""``RLlibTrainee``: PPO with one policy shared by all agents, on RLlib's new API stack, sampled from the native batch."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from gymnasium import spaces
from pydantic import BaseModel, ConfigDict, Field
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core import COMPONENT_RL_MODULE, DEFAULT_MODULE_ID
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils.metrics import LEARNER_RESULTS

from envtuning.rllib_callback import RLlibCurriculumCallback
from envtuning.trainee import Metrics, OnIteration, TrainingDiverged, WorkerLost
from envtuning.trainees.ray_session import start_ray
from envtuning.trainees.rllib_network import LakeNetwork
from envtuning.trainees.rllib_policy import SharedPolicy
from envtuning.trainees.rllib_ppo import LakePPO
from envtuning.trainees.rllib_runner import LakeEnvRunner
from mapf_frozenlake import LakeConfig
from mapf_frozenlake.types import NUM_ACTIONS
from mapf_frozenlake.world.layout import EgoLayout, checked_window

if TYPE_CHECKING:
    from mapf_frozenlake.instance_set import InstanceSet

_LEARNER = ("learner/rl_module", "learner/optimizer")  # what a checkpoint holds of RLlib's LearnerGroup
_LATELY = 10  # iterations over which the gradient's norm is smoothed: RLlib gives the last minibatch's only


class RLlibOptions(BaseModel):
    """How the trainee sees, samples and learns. The defaults suit boards of 3–10 a side and 2–5 agents on two cores."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    window: int | None = Field(
        7, description="Side of the view around an agent, odd; null: as far as the board may reach."
    )
    hints: bool = Field(
        False, description="Whether the observation has hint channels (LakeConfig.hint_strength scales them)."
    )

    encoder: Literal["conv", "mlp"] = Field("mlp", description="How the view is read.")
    channels: tuple[int, ...] = Field((16, 32), description="Of the convolutions, 3×3 each.")
    hidden: tuple[int, ...] = Field((256, 128), min_length=1, description="Widths of the dense layers.")
    separate_value: bool = Field(False, description="Whether the value has dense layers of its own.")

    num_envs: int = Field(128, ge=1, description="Lakes per EnvRunner, moved by one kernel call.")
    rollout: int = Field(32, ge=1, description="Steps in each lake per iteration.")
    pool_size: int | None = Field(
        None, ge=1, description="Instances per stage to draw episodes from; null: the world's default."
    )

    lr: float = Field(1e-3, gt=0, description="Adam's learning rate.")
    minibatch: int = Field(1024, ge=1, description="Agent steps per gradient step, on each Learner.")
    epochs: int = Field(4, ge=1, description="Passes over each iteration's experience.")
    gamma: float = Field(0.99, ge=0, le=1, description="Discount.")
    gae_lambda: float = Field(0.95, ge=0, le=1, description="λ of the generalised advantage.")
    clip: float = Field(0.2, gt=0, description="PPO's clip of the probability ratio.")
    entropy: float = Field(0.01, ge=0, description="Weight of the entropy bonus.")
    value_weight: float = Field(0.5, ge=0, description="Weight of the value's loss.")
    grad_clip: float = Field(0.5, gt=0, description="Largest global norm of a gradient.")

    temperature: float = Field(
        0.5, ge=0, description="At which policy() draws its actions; 0: the likeliest, 1: as trained."
    )

    num_env_runners: int = Field(0, ge=0, description="Remote EnvRunners; 0: sample in this process.")
    num_learners: int = Field(0, ge=0, description="Remote Learners; 0: learn in this process.")
    cpus_per_env_runner: float = Field(1, ge=0, description="What Ray reserves for each remote EnvRunner.")
    cpus_per_learner: float = Field(1, ge=0, description="What Ray reserves for each remote Learner.")
    gpus_per_learner: float = Field(0, ge=0, description="GPUs for each Learner.")
    sample_timeout: float = Field(120.0, gt=0, description="Seconds after which a remote EnvRunner counts as lost.")
    torch_threads: int = Field(
        1, ge=1, description="CPU threads of PyTorch in this process; such small networks need one."
    )


class RLlibTrainee:
    """A ``Trainee``: see there for what its methods promise. With a local runner and learner it is deterministic.

    ``algorithm`` is the RLlib Algorithm itself, for whatever else RLlib can do with it.
    """

    def __init__(
        self, *, max_size: int, max_agents: int, exclude: InstanceSet | None = None, seed: int = 0, **options: Any
    ) -> None:
        self.options = RLlibOptions(**options)
        self.env_kwargs = {
            "observation": "ego",
            "window": checked_window(self.options.window, max_size),
            "hints": self.options.hints,
            "max_size": max_size,
            "max_agents": max_agents,
        }
        start_ray()
        with _process_state(seed, self.options.torch_threads):
            self.algorithm = LakePPO(algorithm_config(self.options, self.env_kwargs, exclude, seed))

    def train(self, config: LakeConfig, budget: int, *, seed: int, on_iteration: OnIteration | None = None) -> Metrics:
        RLlibCurriculumCallback.swap(self.algorithm, config)
        self.algorithm.env_runner_group.foreach_env_runner(partial(_begin, seed=seed))
        history: list[Metrics] = []
        with _process_state(seed, self.options.torch_threads):
            self.algorithm.learner_group.foreach_learner(partial(_seed_shuffling, seed=seed))
            while sum(done["env_steps"] for done in history) < budget:
                history.append(self._iterate())
                if on_iteration is not None:
                    on_iteration(history[-1])
        return _summary(history)

    def _iterate(self) -> Metrics:
        """One of RLlib's iterations, as our metrics; TrainingDiverged if its numbers are not finite."""
        lost = 0
        deadline = time.monotonic() + self.options.sample_timeout
        while True:
            results = self.algorithm.train()
            outcomes = self.algorithm.outcomes
            lost += outcomes["workers_lost"]
            if outcomes["env_steps"] > 0:
                break
            if time.monotonic() > deadline:
                raise WorkerLost(
                    f"none of {self.options.num_env_runners} EnvRunners came back within sample_timeout="
                    f"{self.options.sample_timeout} s: make a new trainee and load the last checkpoint"
                )
            time.sleep(1)  # RLlib brings lost runners back, as soon as Ray has restarted them
        metrics = _as_metrics(results[LEARNER_RESULTS][DEFAULT_MODULE_ID], outcomes)
        if lost:
            metrics["workers_lost"] = float(lost)
        self._check_finite(metrics)
        return metrics

    def _check_finite(self, metrics: Metrics) -> None:
        wrong = [name for name in ("loss", "grad_norm") if not np.isfinite(metrics[name])]
        learners = self.algorithm.learner_group.foreach_learner(_has_finite_weights)
        if not all(result.get() for result in learners):
            wrong.append("weights")
        if wrong:
            raise TrainingDiverged(
                f"{', '.join(wrong)} left the finite numbers: go on from the last checkpoint with a lower learning rate "
                f"(lr={self.options.lr}) or a smaller grad_clip ({self.options.grad_clip})"
            )

    def policy(self) -> SharedPolicy:
        """The policy as it is now, a copy; acts at ``options.temperature``."""
        network = network_spec(self.options, self.env_kwargs).build()
        network.set_state(self.algorithm.learner_group.get_weights()[DEFAULT_MODULE_ID])
        return SharedPolicy(network, self.env_kwargs, temperature=self.options.temperature)

    def save(self, folder: Path) -> None:
        state = self.algorithm.learner_group.get_state(components=list(_LEARNER))
        torch.save(state, folder / "learner.pt")

    def load(self, folder: Path) -> None:
        state = torch.load(folder / "learner.pt", weights_only=False)
        self.algorithm.learner_group.foreach_learner(partial(_restore, state=state["learner"]))
        self._hand_out_weights()

    def close(self) -> None:
        self.algorithm.stop()

    def _hand_out_weights(self) -> None:
        """Put the learner's weights on every runner, whatever it has now.

        RLlib's own sync leaves remote runners on their first weights after a restore, and ignores weights that are
        older than the runner's: a state without a sequence number is taken always.
        """
        state = {COMPONENT_RL_MODULE: self.algorithm.learner_group.get_weights()}
        self.algorithm.env_runner_group.foreach_env_runner(partial(_set_state, state=state))


def algorithm_config(
    options: RLlibOptions, env_kwargs: dict[str, Any], exclude: InstanceSet | None, seed: int
) -> PPOConfig:
    """The AlgorithmConfig of ``LakePPO``: RLlib's PPO over ``LakeEnvRunner`` with ``LakeNetwork``."""
    spec = network_spec(options, env_kwargs)
    first = LakeConfig.single(env_kwargs["max_size"], num_agents=1)  # until the first stage's config arrives
    return (
        PPOConfig(algo_class=LakePPO)
        .environment(
            env="MAPFFrozenLake-v0",
            env_config=env_kwargs | {"config": first, "exclude": exclude, "pool_size": options.pool_size},
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
        .fault_tolerance(restart_failed_env_runners=True)
        .reporting(min_time_s_per_iteration=None, min_sample_timesteps_per_iteration=0)
        .debugging(seed=seed, log_level="ERROR")
    )


def network_spec(options: RLlibOptions, env_kwargs: dict[str, Any]) -> RLModuleSpec:
    """How to build the network for these options and observations."""
    layout = EgoLayout(env_kwargs["window"], env_kwargs["hints"])
    return RLModuleSpec(
        module_class=LakeNetwork,
        observation_space=spaces.Box(-1.0, 1.0, (layout.size,), np.float32),
        action_space=spaces.Discrete(NUM_ACTIONS),
        model_config={
            "window": layout.window,
            "hints": layout.hints,
            **options.model_dump(include={"encoder", "channels", "hidden", "separate_value"}),
        },
    )


def _as_metrics(learned: dict[str, Any], outcomes: Counter[str]) -> Metrics:
    episodes = max(1, outcomes["episodes"])
    return {
        "env_steps": float(outcomes["env_steps"]),
        "episodes": float(outcomes["episodes"]),
        "success_rate": outcomes["successes"] / episodes,
        "valid_rate": outcomes["valid"] / episodes,
        "episode_length": outcomes["episode_steps"] / episodes,
        "reward": outcomes["reward"] / outcomes["env_steps"],  # per env step, the agents' mean
        "grad_norm": float(learned["gradients_default_optimizer_global_norm"]),
        "loss": float(learned["total_loss"]),
        "policy_loss": float(learned["policy_loss"]),
        "value_loss": float(learned["vf_loss"]),
        "explained_variance": float(learned["vf_explained_var"]),
        "entropy": float(learned["entropy"]),
    }


def _summary(history: list[Metrics]) -> Metrics:
    """A call's metrics: sums of what is counted, rates over its last iterations, the gradient smoothed."""
    late = history[-_LATELY:]
    episodes = sum(done["episodes"] for done in late)
    summary = dict(history[-1])
    for name in ("success_rate", "valid_rate"):
        summary[name] = sum(done[name] * done["episodes"] for done in late) / max(1.0, episodes)
    summary["grad_norm"] = sum(done["grad_norm"] for done in late) / len(late)
    for name in ("env_steps", "episodes", "workers_lost"):
        if any(name in done for done in history):
            summary[name] = sum(done.get(name, 0.0) for done in history)
    return summary


@contextmanager
def _process_state(seed: int, torch_threads: int) -> Iterator[None]:
    """RLlib shuffles by NumPy's global state and PyTorch draws weights from its own: seed both, and put them back."""
    before = np.random.get_state(), torch.get_rng_state(), random.getstate()  # noqa: NPY002
    threads = torch.get_num_threads()
    torch.set_num_threads(torch_threads)
    np.random.seed(seed)  # noqa: NPY002
    torch.manual_seed(seed)
    try:
        yield
    finally:
        np.random.set_state(before[0])  # noqa: NPY002
        torch.set_rng_state(before[1])
        random.setstate(before[2])
        torch.set_num_threads(threads)


def _begin(env_runner: Any, *, seed: int) -> None:
    if env_runner.env is not None:
        env_runner.begin(seed)


def _set_state(env_runner: Any, *, state: dict[str, Any]) -> None:
    env_runner.set_state(state)


def _seed_shuffling(learner: Any, *, seed: int) -> None:
    np.random.seed(seed)  # noqa: NPY002


def _has_finite_weights(learner: Any) -> bool:
    return all(bool(torch.isfinite(p).all()) for p in learner.module[DEFAULT_MODULE_ID].parameters())


def _restore(learner: Any, *, state: dict[str, Any]) -> None:
    """RLlib keeps the newer weights by their sequence number; what is loaded counts, newer or not."""
    learner._weights_seq_no = 0
    learner.set_state(state)
