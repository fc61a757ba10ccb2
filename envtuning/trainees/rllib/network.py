"""The policy that all agents share: a small encoder of what one agent sees, action logits and a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule
from torch import Tensor, nn

from mapf_frozenlake.types import NUM_ACTIONS
from mapf_frozenlake.world.layout import EgoLayout

_NEVER = -1e9  # logit of a masked action: its probability is exactly 0 in float32


class LakeNetwork(TorchRLModule, ValueFunctionAPI):
    """One agent's "ego" vector to masked action logits and a value. Masked actions are never drawn.

    Agents tell themselves apart by the vector's priority and its planes of who goes first, so that equal agents facing each
    other need not mirror each other. ``model_config``: ``window`` and ``hints`` of the observation (``EgoLayout``);
    ``encoder`` "conv" or "mlp"; ``channels`` of the convolutions; ``hidden`` widths of the dense layers;
    ``separate_value``: whether the value has dense layers of its own.
    """

    def setup(self) -> None:
        layout = EgoLayout(self.model_config["window"], self.model_config["hints"])
        self._view = (len(layout.planes), layout.window, layout.window)
        self._view_size = layout.window_size
        self._mask_at = layout.features.index("mask_0") + layout.window_size
        hidden: Sequence[int] = self.model_config["hidden"]

        self.see: nn.Module
        if self.model_config["encoder"] == "conv":
            self.see, seen = _convolutions(len(layout.planes), layout.window, self.model_config["channels"])
        else:
            self.see, seen = nn.Flatten(), layout.window_size
        facts = seen + len(layout.features)
        self.trunk = _dense(facts, hidden)
        self.value_trunk = _dense(facts, hidden) if self.model_config["separate_value"] else None
        self.policy_head = _scaled(nn.Linear(hidden[-1], NUM_ACTIONS), 0.01)  # starts close to uniform
        self.value_head = _scaled(nn.Linear(hidden[-1], 1), 1.0)

    def policy_and_value(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """float32[n, EgoLayout.size] → logits [n, NUM_ACTIONS], values [n]."""
        logits, embedding = self._logits(rows)
        return logits, self.value_head(embedding).squeeze(-1)

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        logits, embedding = self._logits(batch[Columns.OBS])
        return {Columns.ACTION_DIST_INPUTS: logits, Columns.EMBEDDINGS: embedding}

    def compute_values(self, batch: dict[str, Any], embeddings: Tensor | None = None) -> Tensor:
        if embeddings is None:
            _, embeddings = self._logits(batch[Columns.OBS])
        return self.value_head(embeddings).squeeze(-1)

    def _logits(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Logits, and the last layer that the value is read from."""
        view = rows[:, : self._view_size].unflatten(1, self._view)
        facts = torch.cat([self.see(view), rows[:, self._view_size :]], dim=1)
        embedding = self.trunk(facts)
        legal = rows[:, self._mask_at : self._mask_at + NUM_ACTIONS] > 0
        logits = self.policy_head(embedding).masked_fill(~legal, _NEVER)
        return logits, embedding if self.value_trunk is None else self.value_trunk(facts)


def _convolutions(planes: int, window: int, channels: Sequence[int]) -> tuple[nn.Module, int]:
    """3×3 convolutions without padding, so that the view shrinks towards the agent; and the flat length of what is left."""
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
