"""``PPOTrainee``: PPO in one process, with PyTorch and the native batch, without Ray: the algorithm of ``trainees.rllib``, for many short runs.

One policy is shared by all agents. Options, network, sampling and the loop of iterations are in ``trainees.lakes``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from engineers.from_file import DATA, reads
from envtuning.trainees.base import Metrics
from envtuning.trainees.lakes.network import AgentNetwork
from envtuning.trainees.lakes.options import LakeOptions
from envtuning.trainees.lakes.sampler import LakeSampler, as_metrics
from envtuning.trainees.lakes.trainee import LakeTrainee
from envtuning.trainees.process_state import process_state
from envtuning.trainees.tensors import are_finite, load_tensors, raise_unless_fits
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
        self.count([sampler.ended])
        return as_metrics(counts) | self.learner.learn(experience, shuffle)

    def _lakes(self, config: LakeConfig) -> LakeBatch:
        if self._env is None:
            self._env = LakeBatch(config, self.options.num_envs, **self.lake_kwargs)
        self._env.set_config(config)
        return self._env

    def copied_network(self) -> AgentNetwork:
        return copy.deepcopy(self.network)

    def weights_are_finite(self) -> bool:
        return are_finite(self.network.parameters())

    def save(self, folder: Path) -> None:
        """Saves weights, optimiser and visited boards. There is no random state to save, because each call of ``train`` is seeded."""
        state = {"network": self.network.state_dict(), "optimiser": self.learner.optimiser.state_dict()}
        torch.save(state, folder / "learner.pt")
        self.visited.save(folder)

    def load(self, folder: Path) -> None:
        self.visited.load(folder)
        state = load_tensors(folder / "learner.pt")
        self.network.load_state_dict(state["network"])
        self.learner.optimiser.load_state_dict(state["optimiser"])
        raise_unless_fits(self.learner.optimiser)
        for group in self.learner.optimiser.param_groups:
            group["lr"] = self.options.lr  # the checkpoint may have another one

    def close(self) -> None:
        """Nothing to release."""


class PPOLearner:
    """PPO's update: a few passes over a rollout, in small gradient steps. Owns the optimiser. The result of ``learn`` depends only on weights, optimiser, experience and the generator's state."""

    def __init__(self, network: AgentNetwork, options: LakeOptions) -> None:
        self.network, self.options = network, options
        self.optimiser = torch.optim.Adam(network.parameters(), lr=options.lr, fused=True)

    def learn(self, experience: Mapping[str, NDArray], shuffle: torch.Generator) -> dict[str, float]:
        """``epochs`` passes over the experience in shuffled minibatches; returns the means of the last pass."""
        data = {name: torch.from_numpy(array) for name, array in experience.items() if name != "action_dist_inputs"}
        advantages = data["advantages"]
        data["advantages"] = (advantages - advantages.mean()) / advantages.std(correction=0).clamp_min(1e-4)
        seen: list[dict[str, float]] = []
        for _ in range(self.options.epochs):
            seen.clear()
            for chosen in torch.randperm(len(advantages), generator=shuffle).split(self.options.minibatch):
                seen.append(self._step({name: column[chosen] for name, column in data.items()}))
        return {name: sum(one[name] for one in seen) / len(seen) for name in seen[0]}

    def _step(self, batch: Mapping[str, Tensor]) -> dict[str, float]:
        """One gradient step; returns the losses before it, and the gradient's norm before clipping."""
        options = self.options
        logits, values = self.network.policy_and_value(batch["obs"])
        log_probs = torch.log_softmax(logits, dim=1)
        taken = log_probs.gather(1, batch["actions"].unsqueeze(1)).squeeze(1)
        ratio = torch.exp(taken - batch["action_logp"])
        clipped = ratio.clamp(1 - options.clip, 1 + options.clip)
        policy_loss = -torch.minimum(ratio * batch["advantages"], clipped * batch["advantages"]).mean()
        value_loss = (values - batch["value_targets"]).square().mean()
        entropy = -(log_probs.exp() * log_probs).sum(dim=1).mean()
        loss = policy_loss + options.value_weight * value_loss - options.entropy * entropy
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), options.grad_clip)
        self.optimiser.step()
        named = {"loss": loss, "policy_loss": policy_loss, "value_loss": value_loss, "entropy": entropy}
        return {name: float(value.detach()) for name, value in named.items()} | {"grad_norm": float(norm)}
