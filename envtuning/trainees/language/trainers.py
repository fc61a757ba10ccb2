"""TRL's trainer without work that changes no step: prompts that are read again, and replies that teach nothing."""

from __future__ import annotations

from typing import Any

import torch

from envtuning.trainees.language.options import DIVIDED_BY_REPLIES
from envtuning.trainees.language.read_once import logits_of_replies
from envtuning.trainees.privates.trl import OpenGRPOTrainer


class PromptOnceTrainer(OpenGRPOTrainer):
    """GRPO that, on a CPU, reads a prompt once for all of its replies, and takes logits of the replies alone.

    Takes the steps of ``GRPOTrainer`` up to rounding. TRL reads the prompt with each reply, and without a GPU it multiplies every
    token of the prompt by the vocabulary, too: for short replies to a common prompt, this is most of a step.
    """

    trained_tokens = 0  # of replies with a gradient, since they were taken

    def take_trained_tokens(self) -> int:
        taken, self.trained_tokens = self.trained_tokens, 0
        return taken

    def loss_of_replies(self, model: Any, inputs: dict[str, Any]) -> Any:
        self.trained_tokens += int(inputs["completion_mask"][inputs["advantages"] != 0].sum())
        return super().loss_of_replies(model, inputs)

    def log_probabilities(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,
        compute_entropy: bool = False,
        **more: Any,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        logits = None
        if input_ids.device.type == "cpu" and self.accelerator.num_processes == 1 and not any(more.values()):
            with self.accelerator.autocast():
                logits = logits_of_replies(model, input_ids, attention_mask, logits_to_keep)
        if logits is None:
            return super().log_probabilities(
                model, input_ids, attention_mask, logits_to_keep, batch_size, compute_entropy=compute_entropy, **more
            )
        logs = torch.log_softmax(logits.float() / self.temperature, dim=-1)
        chosen = logs.gather(-1, input_ids[:, -logits_to_keep:, None]).squeeze(-1)
        with torch.set_grad_enabled(torch.is_grad_enabled() and bool(self.args.entropy_coef)):
            entropies = -(logs.exp() * logs).sum(-1) if compute_entropy else None
        return chosen, entropies, None


class SignalTrainer(PromptOnceTrainer):
    """GRPO without the replies that teach nothing. Takes the same steps as ``GRPOTrainer``.

    If all replies to a prompt have the same reward, their advantage is zero, and without a KL term so is their gradient. Their
    forward and backward passes are left out; for a small model they can be half of a training step. Entropy and clip ratios are
    means over the replies that are left.
    """

    def loss_of_replies(self, model: Any, inputs: dict[str, Any]) -> Any:
        kept = inputs["advantages"] != 0
        if kept.all():
            return super().loss_of_replies(model, inputs)
        if not kept.any():
            kept[0] = True  # one reply stays, with a gradient of zero, so that every process takes every step
        count = len(kept)
        left = {
            name: value[kept] if isinstance(value, torch.Tensor) and value.dim() and len(value) == count else value
            for name, value in inputs.items()
        }
        loss = super().loss_of_replies(model, left)
        return loss * (kept.sum() / count) if DIVIDED_BY_REPLIES[self.loss_type] else loss
