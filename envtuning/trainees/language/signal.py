"""GRPO without the replies that teach nothing.

If all replies to a prompt have the same reward, their advantage is zero, and without a KL term so is their gradient. Their forward
and backward passes can be left out; for a small model they can be half of a training step.
"""

from __future__ import annotations

from typing import Any

import torch
from trl import GRPOTrainer

from envtuning.trainees.language.options import DIVIDED_BY_REPLIES


class SignalTrainer(GRPOTrainer):
    """Takes the same steps as ``GRPOTrainer``; entropy and clip ratios are means over the replies that are left."""

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
        kept = inputs["advantages"] != 0
        if kept.all():
            return super()._compute_loss(model, inputs)
        if not kept.any():
            kept[0] = True  # one reply stays, with a gradient of zero, so that every process takes every step
        count = len(kept)
        left = {
            name: value[kept] if isinstance(value, torch.Tensor) and value.dim() and len(value) == count else value
            for name, value in inputs.items()
        }
        loss = super()._compute_loss(model, left)
        return loss * (kept.sum() / count) if DIVIDED_BY_REPLIES[self.loss_type] else loss
