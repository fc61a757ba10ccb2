"""``RLlibTrainee``: PPO with one policy shared by all agents, on RLlib's new API stack, sampled from the native batch."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import ray
import torch
import tree  # dm-tree, a requirement of RLlib
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core import COMPONENT_LEARNER, COMPONENT_OPTIMIZER, COMPONENT_RL_MODULE, DEFAULT_MODULE_ID
from ray.rllib.utils.metrics import LEARNER_RESULTS

from engineers.from_file import DATA, reads
from envtuning.curriculum.rllib_callback import RLlibCurriculumCallback
from envtuning.trainees.base import Metrics, WorkerLost
from envtuning.trainees.lakes.network import AgentNetwork
from envtuning.trainees.lakes.sampler import as_metrics
from envtuning.trainees.lakes.trainee import LakeTrainee
from envtuning.trainees.privates import rllib as privates
from envtuning.trainees.process_state import process_state
from envtuning.trainees.rllib.options import RLlibOptions, algorithm_config
from envtuning.trainees.rllib.ppo import LakePPO
from envtuning.trainees.rllib.ray_session import start_ray
from envtuning.trainees.tensors import are_finite, load_tensors, raise_unless_fits
from mapf_frozenlake import LakeConfig

_PARTS = (COMPONENT_RL_MODULE, COMPONENT_OPTIMIZER)  # a Learner's parts in a checkpoint
_LEARNER = tuple(f"{COMPONENT_LEARNER}/{part}" for part in _PARTS)


@reads(dict.fromkeys(RLlibOptions.model_fields, DATA))
class RLlibTrainee(LakeTrainee):
    """A ``Trainee``, which documents the methods. With a local runner and learner it is deterministic.

    ``algorithm`` is the RLlib Algorithm itself, for other uses of RLlib; ``options`` are ``RLlibOptions``.
    """

    options_type = RLlibOptions
    options: RLlibOptions

    def make(self, seed: int) -> None:
        start_ray()
        with process_state(seed, self.options.torch_threads):
            settings = algorithm_config(self.options, self.lake_kwargs, seed)
            self.algorithm = self._built(settings) if self.options.num_env_runners else LakePPO(settings)

    @classmethod
    def resources(cls, **options: Any) -> Sequence[Mapping[str, float]]:
        given = RLlibOptions(**options)
        runners = given.num_env_runners * [{"CPU": given.cpus_per_env_runner}]
        learners = given.num_learners * [{"CPU": given.cpus_per_learner, "GPU": given.gpus_per_learner}]
        here = {"CPU": given.torch_threads, "GPU": 0 if learners else given.gpus_per_learner}
        return (here, *runners, *learners)

    def _built(self, settings: PPOConfig) -> LakePPO:
        """The Algorithm with all its remote EnvRunners up. Raises ``WorkerLost`` if they are not up within ``build_timeout``.

        RLlib's constructor waits for its first runner, and for ever if no place is free for it or its node is gone. So it runs in a
        thread, which ends when the runners that it waits for are killed.
        """
        algorithm = LakePPO.__new__(LakePPO)
        raised: list[Exception] = []

        def build() -> None:
            try:
                algorithm.__init__(settings)  # type: ignore[misc]
            except Exception as error:
                raised.append(error)

        deadline = time.monotonic() + self.options.build_timeout
        thread = threading.Thread(target=build, name="building", daemon=True)
        thread.start()
        thread.join(self.options.build_timeout)
        if raised:
            raise raised[0]
        if getattr(algorithm, "env_runner_group", None) is None:
            raise WorkerLost(self._too_few(0))
        answered = algorithm.ask_runners(_nothing, max(1.0, deadline - time.monotonic()))
        up = len(answered) - 1  # not counting the local one
        if up == self.options.num_env_runners and not thread.is_alive():
            return algorithm
        said = self._too_few(up)
        for runner in privates.remote_runners(algorithm.env_runner_group):
            ray.kill(runner)
        thread.join(self.options.build_timeout)
        if not thread.is_alive() and not raised:
            _stop(algorithm)
        raise WorkerLost(said)

    def _too_few(self, up: int) -> str:
        options, cpus = self.options, ray.cluster_resources().get("CPU", 0)
        return (
            f"{up} of num_env_runners={options.num_env_runners} were up within build_timeout={options.build_timeout:g} s, each on "
            f"cpus_per_env_runner={options.cpus_per_env_runner:g}, and Ray has {cpus:g} CPUs, "
            f"{ray.available_resources().get('CPU', 0):g} of them free: bring a lost node back, ask for fewer runners, or raise "
            "build_timeout"
        )

    def begin(self, config: LakeConfig, seed: int) -> Callable[[], Metrics]:
        RLlibCurriculumCallback.swap(self.algorithm, config, timeout_seconds=self.options.sample_timeout)
        self.algorithm.ask_runners(partial(_begin, seed=seed), self.options.sample_timeout)
        self.algorithm.learner_group.foreach_learner(partial(_seed_shuffling, seed=seed))
        return self._once

    def _once(self) -> Metrics:
        """One of RLlib's iterations, with this package's metrics."""
        lost = 0.0
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
            time.sleep(1)  # RLlib reconnects lost runners as soon as Ray has restarted them
        self.count(self.algorithm.ended)
        metrics = as_metrics(outcomes) | _learnt(results[LEARNER_RESULTS][DEFAULT_MODULE_ID])
        if "workers" in outcomes:
            metrics["workers"] = outcomes["workers"]
        if lost:
            metrics["workers_lost"] = lost
        return metrics

    def copied_network(self) -> AgentNetwork:
        network = self.new_network()
        weights = self.algorithm.learner_group.get_weights()[DEFAULT_MODULE_ID]
        network.load_state_dict({name: torch.tensor(weight) for name, weight in weights.items()})
        return network

    def weights_are_finite(self) -> bool:
        return all(result.get() for result in self.algorithm.learner_group.foreach_learner(_has_finite_weights))

    def save(self, folder: Path) -> None:
        """Saves weights, optimiser and visited boards. There is no random state to save, because each call of ``train`` is seeded."""
        state = self.algorithm.learner_group.get_state(components=list(_LEARNER))[COMPONENT_LEARNER]
        plain = tree.map_structure(_as_tensor, {part: state[part] for part in _PARTS})
        torch.save(plain, folder / "learner.pt")
        self.visited.save(folder)

    def load(self, folder: Path) -> None:
        """Restore the saved state in the learner and in all runners, even if it is older than the current one.

        RLlib's own restore keeps the newer weights, by their sequence number, and does not update remote runners, which keep the
        weights that they were built with.
        """
        self.visited.load(folder)
        state = load_tensors(folder / "learner.pt")
        self.algorithm.learner_group.foreach_learner(partial(_restore_learner, state=state, lr=self.options.lr))
        weights = self.algorithm.learner_group.get_weights()
        self.algorithm.ask_runners(
            partial(privates.set_state, state={COMPONENT_RL_MODULE: weights}), self.options.sample_timeout
        )

    def close(self) -> None:
        _stop(self.algorithm)


def _stop(algorithm: LakePPO) -> None:
    """Release its processes. Runners end with their handles; RLlib would ask each to stop, and wait for lost ones."""
    privates.forget_runners(algorithm.env_runner_group)
    algorithm.stop()
    with suppress(OSError):  # RLlib makes a folder in ~/ray_results; it stays if it has files
        Path(algorithm.logdir).rmdir()


def _learnt(learner: dict[str, Any]) -> Metrics:
    """The Learner's metrics of its last update, under this package's names."""
    return {
        "grad_norm": float(learner["gradients_default_optimizer_global_norm"]),
        "loss": float(learner["total_loss"]),
        "policy_loss": float(learner["policy_loss"]),
        "value_loss": float(learner["vf_loss"]),
        "explained_variance": float(learner["vf_explained_var"]),
        "entropy": float(learner["entropy"]),
    }


def _nothing(env_runner: Any) -> None:
    """Returns when the runner is up."""


def _begin(env_runner: Any, *, seed: int) -> None:
    if env_runner.env is not None:
        env_runner.begin(seed)


def _seed_shuffling(learner: Any, *, seed: int) -> None:
    np.random.seed(seed)  # noqa: NPY002


def _has_finite_weights(learner: Any) -> bool:
    return are_finite(learner.module[DEFAULT_MODULE_ID].parameters())


def _as_tensor(leaf: Any) -> Any:
    """Arrays become tensors, and NumPy's scalars Python's: ``torch.load`` reads these without running code."""
    if isinstance(leaf, np.ndarray):
        return torch.from_numpy(leaf.copy())
    return leaf.item() if isinstance(leaf, np.generic) else leaf


def _restore_learner(learner: Any, *, state: dict[str, Any], lr: float) -> None:
    """Restores the state, with the learning rate of the options instead of the checkpoint's."""
    privates.set_state(learner, state)
    for optimiser in privates.optimisers(learner):
        raise_unless_fits(optimiser)
        for group in optimiser.param_groups:
            group["lr"] = lr
