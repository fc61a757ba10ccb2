"""One agent's view to masked action logits and a value: dense layers that all agents share."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from mapf_frozenlake.types import NUM_ACTIONS
from mapf_frozenlake.world.layout import EgoLayout

NEVER = -1e9  # logit of a masked action: its probability is exactly 0 in float32


class AgentNetwork(nn.Module):
    """Masked actions are never drawn. Agents tell themselves apart by what ``EgoLayout`` says of who goes first."""

    def __init__(self, layout: EgoLayout, hidden: Sequence[int]) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        width = layout.size
        for out in hidden:
            layers += [_scaled(nn.Linear(width, out), 2**0.5), nn.ReLU()]
            width = out
        self.trunk = nn.Sequential(*layers)
        self.policy_head = _scaled(nn.Linear(width, NUM_ACTIONS), 0.01)  # starts close to uniform
        self.value_head = _scaled(nn.Linear(width, 1), 1.0)
        self._mask_at = layout.features.index("mask_0") + layout.window_size

    def policy_and_value(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """float32[n, EgoLayout.size] → logits [n, NUM_ACTIONS], values [n]."""
        embedding = self.trunk(rows)
        legal = rows[:, self._mask_at : self._mask_at + NUM_ACTIONS] > 0
        return self.policy_head(embedding).masked_fill(~legal, NEVER), self.value_head(embedding).squeeze(1)


def _scaled(layer: nn.Linear, gain: float) -> nn.Linear:
    nn.init.orthogonal_(layer.weight, gain)
    with torch.no_grad():
        layer.bias.zero_()
    return layer
