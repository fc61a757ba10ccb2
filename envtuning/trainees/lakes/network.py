"""The network that all agents share: from one agent's view to masked action logits and a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from mapf_frozenlake.types import NUM_ACTIONS
from mapf_frozenlake.world.layout import EgoLayout

NEVER = -1e9  # logit of a masked action: its probability is exactly 0 in float32


class AgentNetwork(nn.Module):
    """Masked actions are never drawn. ``EgoLayout`` tells agents apart by priority, so that two agents in symmetric positions can act
    differently.
    """

    def __init__(self, layout: EgoLayout, **layers: Any) -> None:
        super().__init__()
        self.build(layout, **layers)

    def build(
        self,
        layout: EgoLayout,
        *,
        hidden: Sequence[int],
        encoder: str = "mlp",
        channels: Sequence[int] = (),
        separate_value: bool = False,
    ) -> None:
        """Make the layers. ``LakeOptions`` describes the settings."""
        self._view = (len(layout.planes), layout.window, layout.window)
        self._view_size = layout.window_size
        self._mask_at = layout.features.index("mask_0") + layout.window_size
        self.see, seen = None, layout.window_size
        if encoder == "conv":
            self.see, seen = _convolutions(len(layout.planes), layout.window, channels)
        facts = seen + len(layout.features)
        self.trunk = _dense(facts, hidden)
        self.value_trunk = _dense(facts, hidden) if separate_value else None
        self.policy_head = _scaled(nn.Linear(hidden[-1], NUM_ACTIONS), 0.01)  # starts close to uniform
        self.value_head = _scaled(nn.Linear(hidden[-1], 1), 1.0)

    def policy_and_value(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """float32[n, EgoLayout.size] → logits [n, NUM_ACTIONS], values [n]."""
        logits, embedding = self.logits(rows)
        return logits, self.value_of(embedding)

    def logits(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Logits, and the last layer that the value is read from."""
        facts = rows
        if self.see is not None:
            view = rows[:, : self._view_size].unflatten(1, self._view)
            facts = torch.cat([self.see(view), rows[:, self._view_size :]], dim=1)
        embedding = self.trunk(facts)
        legal = rows[:, self._mask_at : self._mask_at + NUM_ACTIONS] > 0
        logits = self.policy_head(embedding).masked_fill(~legal, NEVER)
        return logits, embedding if self.value_trunk is None else self.value_trunk(facts)

    def value_of(self, embedding: Tensor) -> Tensor:
        return self.value_head(embedding).squeeze(1)


def _convolutions(planes: int, window: int, channels: Sequence[int]) -> tuple[nn.Module, int]:
    """3×3 convolutions without padding, so that the view shrinks towards the agent; and the flat length of their output."""
    layers: list[nn.Module] = []
    for width in channels:
        layers += [_scaled(nn.Conv2d(planes, width, 3), 2**0.5), nn.ReLU()]
        planes, window = width, window - 2
    if window < 1:
        raise ValueError(f"{len(channels)} convolutions of 3×3 need a window of at least {2 * len(channels) + 1}")
    return nn.Sequential(*layers, nn.Flatten()), planes * window * window


def _dense(width: int, hidden: Sequence[int]) -> nn.Module:
    layers: list[nn.Module] = []
    for out in hidden:
        layers += [_scaled(nn.Linear(width, out), 2**0.5), nn.ReLU()]
        width = out
    return nn.Sequential(*layers)


def _scaled(layer: nn.Linear | nn.Conv2d, gain: float) -> Any:
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
    return layer
