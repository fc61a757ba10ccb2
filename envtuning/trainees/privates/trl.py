"""Private names of TRL."""

from __future__ import annotations

from typing import Any

import torch
from trl import GRPOTrainer

from envtuning.trainees import privates
from envtuning.trainees.language.options import DIVIDED_BY_REPLIES
from envtuning.trainees.language.read_once import logits_of_replies

TESTED = "1.16.0"


def begin_stretch(trainer: GRPOTrainer) -> None:
    """The next ``train`` generates replies for its own rows, and reports its own metrics."""
    trainer._step, trainer._buffered_inputs = 0, None
    if trainer.use_vllm:
        trainer._last_loaded_step = -1
    trainer._metrics["train"].clear()


class PromptOnceTrainer(GRPOTrainer):
    """GRPO that, on a CPU, reads a prompt once for all of its replies, and takes logits of the replies alone.

    Takes the steps of ``GRPOTrainer`` up to rounding. TRL reads the prompt with each reply, and without a GPU it multiplies every
    token of the prompt by the vocabulary, too: for short replies to a common prompt, this is most of a step.
    """

    trained_tokens = 0  # of replies with a gradient, since they were taken

    def take_trained_tokens(self) -> int:
        taken, self.trained_tokens = self.trained_tokens, 0
        return taken

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
        self.trained_tokens += int(inputs["completion_mask"][inputs["advantages"] != 0].sum())
        return super()._compute_loss(model, inputs)

    def _get_per_token_logps_and_entropies(
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
            return super()._get_per_token_logps_and_entropies(
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
    names = (
        "_step", "_buffered_inputs", "_last_loaded_step", "_metrics", "_compute_loss", "_get_per_token_logps_and_entropies",
    )  # fmt: skip
    return privates.missing("trl", TESTED, {GRPOTrainer: names})
