"""PPO's update: a few passes over a rollout, in small gradient steps."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from envtuning.trainees.lakes.network import AgentNetwork
from envtuning.trainees.lakes.options import LakeOptions


class PPOLearner:
    """Owns the optimiser. The result of ``learn`` depends only on weights, optimiser, experience and the generator's state."""

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
