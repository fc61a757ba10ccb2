"""``PPOTrainee``: one policy shared by all agents, sampled from the native batch and learnt in the same process."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engineers.from_file import DATA, reads
from envtuning.trainees.base import Metrics, OnIteration
from envtuning.trainees.lakes.levels import LevelReplay
from envtuning.trainees.lakes.sampler import LakeSampler, as_metrics
from envtuning.trainees.lakes.trainee import LakeTrainee
from envtuning.trainees.ppo.learner import PPOLearner
from envtuning.trainees.ppo.network import AgentNetwork
from envtuning.trainees.ppo.options import PPOOptions
from envtuning.trainees.process_state import process_state
from envtuning.trainees.tensors import load_tensors, raise_unless_fits
from envtuning.worlds.world import InfeasibleConfig, World
from mapf_frozenlake import GenerationError, LakeBatch, LakeConfig
from mapf_frozenlake.world.layout import EgoLayout


@reads(dict.fromkeys(PPOOptions.model_fields, DATA))
class PPOTrainee(LakeTrainee):
    """A ``Trainee``: see there for what its methods promise; it is deterministic. ``options`` are ``PPOOptions``."""

    in_words = (
        "PPO from the config's reward; one neural policy that all agents share, each from what it sees around it."
    )
    options_type = PPOOptions
    options: PPOOptions

    def __init__(
        self,
        *,
        room: Mapping[str, Any],
        world: World[Any] | None = None,
        exclude: Sequence[Any] = (),
        seed: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(room=room, world=world, options=options)
        self.exclude = list(exclude)
        with process_state(seed, self.options.torch_threads):
            self.network = AgentNetwork(EgoLayout(self.env_kwargs["window"], self.options.hints), self.options.hidden)
        self.learner = PPOLearner(self.network, self.options)
        self._env: LakeBatch | None = None

    def train(self, config: LakeConfig, budget: int, *, seed: int, on_iteration: OnIteration | None = None) -> Metrics:
        try:
            sampler = self._sampler(config, seed)
            shuffle = torch.Generator().manual_seed(seed)
            with process_state(seed, self.options.torch_threads):
                return self.iterate(partial(self._once, sampler, shuffle), budget, on_iteration)
        except GenerationError as error:  # at the first draw, or at a later one
            raise InfeasibleConfig(str(error)) from error

    def _once(self, sampler: LakeSampler, shuffle: torch.Generator) -> Metrics:
        """Sample, then learn from it."""
        rollout, counts = sampler.sample(self.network)
        if sampler.levels is not None:
            sampler.levels.learnt(rollout, self.options.gae_lambda, sampler.env.pool.arrays.makespan)
        experience = rollout.experience(self.options.gamma, self.options.gae_lambda)
        return as_metrics(counts) | self.learner.learn(experience, shuffle)

    def _sampler(self, config: LakeConfig, seed: int) -> LakeSampler:
        options, lakes = self.options, self._lakes(config)
        levels = None
        if options.levels is not None:
            shape = {"num_envs": lakes.num_envs, "pool_size": lakes.pool.size, "length": options.rollout}
            levels = LevelReplay(options.levels, **shape, gamma=options.gamma, seed=seed)
        return LakeSampler(lakes, options.rollout, np.random.SeedSequence(seed), levels)

    def _lakes(self, config: LakeConfig) -> LakeBatch:
        if self._env is None:
            self._env = LakeBatch(
                num_envs=self.options.num_envs,
                config=config,
                exclude=self.exclude,
                certify=self.options.levels.certificate if self.options.levels else None,
                **self.env_kwargs,
            )
        self._env.set_config(config)
        return self._env

    def copied_network(self) -> AgentNetwork:
        return copy.deepcopy(self.network)

    def weights_are_finite(self) -> bool:
        return all(bool(torch.isfinite(weight).all()) for weight in self.network.parameters())

    def save(self, folder: Path) -> None:
        """Weights and optimiser. There is no random state to keep: each ``train`` call is seeded."""
        state = {"network": self.network.state_dict(), "optimiser": self.learner.optimiser.state_dict()}
        torch.save(state, folder / "learner.pt")

    def load(self, folder: Path) -> None:
        state = load_tensors(folder / "learner.pt")
        self.network.load_state_dict(state["network"])
        self.learner.optimiser.load_state_dict(state["optimiser"])
        raise_unless_fits(self.learner.optimiser)
        for group in self.learner.optimiser.param_groups:
            group["lr"] = self.options.lr  # the checkpoint may have been trained with another

    def close(self) -> None:
        """Nothing to give back."""
