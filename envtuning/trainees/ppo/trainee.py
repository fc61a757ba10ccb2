"""``PPOTrainee``: one policy shared by all agents, sampled from the native batch and learnt in the same process."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from engineers.from_file import DATA, reads
from envtuning.trainees.base import Metrics
from envtuning.trainees.lakes.network import AgentNetwork
from envtuning.trainees.lakes.options import LakeOptions
from envtuning.trainees.lakes.sampler import LakeSampler, as_metrics
from envtuning.trainees.lakes.trainee import LakeTrainee
from envtuning.trainees.ppo.learner import PPOLearner
from envtuning.trainees.process_state import process_state
from envtuning.trainees.tensors import load_tensors, raise_unless_fits
from mapf_frozenlake import LakeBatch, LakeConfig


@reads(dict.fromkeys(LakeOptions.model_fields, DATA))
class PPOTrainee(LakeTrainee):
    """A deterministic ``Trainee``, which documents the methods. ``options`` are ``LakeOptions``."""

    options_type = LakeOptions
    options: LakeOptions

    def make(self, seed: int) -> None:
        with process_state(seed, self.options.torch_threads):
            self.network = self.new_network()
        self.learner = PPOLearner(self.network, self.options)
        self._env: LakeBatch | None = None

    def begin(self, config: LakeConfig, seed: int) -> Callable[[], Metrics]:
        sampler = LakeSampler(self._lakes(config), self.options.rollout, seed)
        return partial(self._once, sampler, torch.Generator().manual_seed(seed))

    def _once(self, sampler: LakeSampler, shuffle: torch.Generator) -> Metrics:
        """Sample a rollout, and learn from it."""
        experience, counts = sampler.experience(self.network, self.options)
        self.tally = sampler.tally
        return as_metrics(counts) | self.learner.learn(experience, shuffle)

    def _lakes(self, config: LakeConfig) -> LakeBatch:
        if self._env is None:
            self._env = LakeBatch(config, self.options.num_envs, **self.lake_kwargs)
        self._env.set_config(config)
        return self._env

    def copied_network(self) -> AgentNetwork:
        return copy.deepcopy(self.network)

    def weights_are_finite(self) -> bool:
        return all(bool(torch.isfinite(weight).all()) for weight in self.network.parameters())

    def save(self, folder: Path) -> None:
        """Saves weights and optimiser. There is no random state to save, because each call of ``train`` is seeded."""
        state = {"network": self.network.state_dict(), "optimiser": self.learner.optimiser.state_dict()}
        torch.save(state, folder / "learner.pt")

    def load(self, folder: Path) -> None:
        state = load_tensors(folder / "learner.pt")
        self.network.load_state_dict(state["network"])
        self.learner.optimiser.load_state_dict(state["optimiser"])
        raise_unless_fits(self.learner.optimiser)
        for group in self.learner.optimiser.param_groups:
            group["lr"] = self.options.lr  # the checkpoint may have another one

    def close(self) -> None:
        """Nothing to release."""
