"""Private names of TRL."""

from __future__ import annotations

from typing import Any

import torch
from trl import GRPOTrainer

from envtuning.trainees import privates
from envtuning.trainees.language.options import DIVIDED_BY_REPLIES

TESTED = "1.16.0"


def begin_stretch(trainer: GRPOTrainer) -> None:
    """The next ``train`` generates replies for its own rows, and reports its own metrics."""
    trainer._step, trainer._buffered_inputs = 0, None
    if trainer.use_vllm:
        trainer._last_loaded_step = -1
    trainer._metrics["train"].clear()


class SignalTrainer(GRPOTrainer):
    """GRPO without the replies that teach nothing. Takes the same steps as ``GRPOTrainer``.

    If all replies to a prompt have the same reward, their advantage is zero, and without a KL term so is their gradient. Their
    forward and backward passes are left out; for a small model they can be half of a training step. Entropy and clip ratios are
    means over the replies that are left.
    """

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


def missing() -> list[str]:
    """A sentence for each name that the installed version lacks."""
    names = ("_step", "_buffered_inputs", "_last_loaded_step", "_metrics", "_compute_loss")
    return privates.missing("trl", TESTED, {GRPOTrainer: names})
