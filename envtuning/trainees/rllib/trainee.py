"""``RLlibTrainee``: PPO with one policy shared by all agents, on RLlib's new API stack, sampled from the native batch."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tree  # dm-tree, which RLlib brings
from ray.rllib.core import COMPONENT_LEARNER, COMPONENT_OPTIMIZER, COMPONENT_RL_MODULE, DEFAULT_MODULE_ID
from ray.rllib.utils.metrics import LEARNER_RESULTS

from envtuning.curriculum.rllib_callback import RLlibCurriculumCallback
from envtuning.trainees.base import Metrics, OnIteration, TrainingDiverged, WorkerLost
from envtuning.trainees.process_state import process_state
from envtuning.trainees.rllib.options import RLlibOptions, algorithm_config, network_spec
from envtuning.trainees.rllib.policy import SharedPolicy
from envtuning.trainees.rllib.ppo import LakePPO
from envtuning.trainees.rllib.ray_session import start_ray
from envtuning.worlds.world import InfeasibleConfig, World
from mapf_frozenlake import GenerationError, LakeConfig
from mapf_frozenlake.types import MAX_SIZE
from mapf_frozenlake.world.layout import checked_window

_PARTS = (COMPONENT_RL_MODULE, COMPONENT_OPTIMIZER)  # what a checkpoint holds of a Learner
_LEARNER = tuple(f"{COMPONENT_LEARNER}/{part}" for part in _PARTS)
_LATELY = 10  # iterations over which the gradient's norm is smoothed: RLlib gives the last minibatch's only


class RLlibTrainee:
    """A ``Trainee``: see there for what its methods promise. With a local runner and learner it is deterministic.

    ``algorithm`` is the RLlib Algorithm itself, for whatever else RLlib can do with it; ``options`` are ``RLlibOptions``.
    """

    form = "acts"
    reports = frozenset({"success_rate", "valid_rate", "grad_norm", "loss", "entropy"})

    def __init__(
        self,
        *,
        room: Mapping[str, Any],
        world: World[Any] | None = None,
        exclude: Sequence[Any] = (),
        seed: int = 0,
        **options: Any,
    ) -> None:
        self.options = RLlibOptions(**options)
        if world is not None and world.config_type is not LakeConfig:
            raise ValueError(f"it trains on lakes, not on {world.about.name}: name another trainee.kind")
        self.env_kwargs = {
            "observation": "ego",
            "window": checked_window(self.options.window, room["max_size"]),
            "hints": self.options.hints,
            "max_size": room["max_size"],
            "max_agents": room["max_agents"],
        }
        start_ray()
        with process_state(seed, self.options.torch_threads):
            self.algorithm = LakePPO(algorithm_config(self.options, self.env_kwargs, list(exclude), seed))

    @staticmethod
    def check_options(**options: Any) -> None:
        """Raises ``ValueError`` for options that are none; starts nothing."""
        checked_window(RLlibOptions(**options).window, MAX_SIZE)

    def train(self, config: LakeConfig, budget: int, *, seed: int, on_iteration: OnIteration | None = None) -> Metrics:
        RLlibCurriculumCallback.swap(self.algorithm, config)
        with _infeasible():
            self.algorithm.env_runner_group.foreach_env_runner(partial(_begin, seed=seed))
        history: list[Metrics] = []
        with process_state(seed, self.options.torch_threads):
            self.algorithm.learner_group.foreach_learner(partial(_seed_shuffling, seed=seed))
            while sum(done["env_steps"] for done in history) < budget:
                history.append(self._iterate())
                if on_iteration is not None:
                    on_iteration(history[-1])  # first, so that the steps of a divergence are charged too
                self._check_finite(history[-1])
        return _summary(history)

    def _iterate(self) -> Metrics:
        """One of RLlib's iterations, as our metrics."""
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
            time.sleep(1)  # RLlib brings lost runners back, as soon as Ray has restarted them
        metrics = _as_metrics(results[LEARNER_RESULTS][DEFAULT_MODULE_ID], outcomes)
        if lost:
            metrics["workers_lost"] = lost
        return metrics

    def _check_finite(self, metrics: Metrics) -> None:
        """Raises ``TrainingDiverged`` for numbers, or weights, that are not finite."""
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
        """Weights and optimiser. There is no random state to keep: each ``train`` call is seeded."""
        state = self.algorithm.learner_group.get_state(components=list(_LEARNER))[COMPONENT_LEARNER]
        plain = tree.map_structure(_as_tensor, {part: state[part] for part in _PARTS})
        torch.save(plain, folder / "learner.pt")

    def load(self, folder: Path) -> None:
        """The learner becomes what was saved, newer or older than it is now, and so do all runners.

        RLlib's own restore keeps whichever weights are newer by their sequence number, and leaves remote runners on the
        weights that they were built with.
        """
        state = torch.load(folder / "learner.pt", weights_only=True)
        self.algorithm.learner_group.foreach_learner(partial(_restore, state=state))
        weights = self.algorithm.learner_group.get_weights()
        self.algorithm.env_runner_group.foreach_env_runner(partial(_restore, state={COMPONENT_RL_MODULE: weights}))

    def close(self) -> None:
        self.algorithm.stop()
        with suppress(OSError):  # RLlib makes a folder in ~/ray_results; it stays where somebody wrote into it
            Path(self.algorithm.logdir).rmdir()


@contextmanager
def _infeasible() -> Iterator[None]:
    """What the generator cannot draw, in the loop's terms; a remote runner's error comes wrapped in Ray's."""
    try:
        yield
    except GenerationError as error:
        raise InfeasibleConfig(str(error)) from error


def _as_metrics(learned: dict[str, Any], outcomes: dict[str, float]) -> Metrics:
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


def _begin(env_runner: Any, *, seed: int) -> None:
    if env_runner.env is not None:
        env_runner.begin(seed)


def _seed_shuffling(learner: Any, *, seed: int) -> None:
    np.random.seed(seed)  # noqa: NPY002


def _has_finite_weights(learner: Any) -> bool:
    return all(bool(torch.isfinite(p).all()) for p in learner.module[DEFAULT_MODULE_ID].parameters())


def _as_tensor(leaf: Any) -> Any:
    """Arrays as tensors and NumPy's scalars as Python's: what ``torch.load`` takes from a file without running code."""
    if isinstance(leaf, np.ndarray):
        return torch.from_numpy(leaf.copy())
    return leaf.item() if isinstance(leaf, np.generic) else leaf


def _restore(learner_or_runner: Any, *, state: dict[str, Any]) -> None:
    """Count from 0 again, so that RLlib takes this state and all that follow it."""
    learner_or_runner._weights_seq_no = 0
    learner_or_runner.set_state(state)
