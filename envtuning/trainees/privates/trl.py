"""Private names of TRL."""

from __future__ import annotations

from typing import Any

from trl import GRPOTrainer

TESTED = "1.16.0"
NAMES = {
    GRPOTrainer: (
        "_step", "_buffered_inputs", "_last_loaded_step", "_metrics", "_compute_loss", "_get_per_token_logps_and_entropies",
    )
}  # fmt: skip


def begin_stretch(trainer: GRPOTrainer) -> None:
    """The next ``train`` generates replies for its own rows, and reports its own metrics."""
    trainer._step, trainer._buffered_inputs = 0, None
    if trainer.use_vllm:
        trainer._last_loaded_step = -1
    trainer._metrics["train"].clear()


class OpenGRPOTrainer(GRPOTrainer):
    """TRL's trainer with public names for two parts of its step, for subclasses to override."""

    def loss_of_replies(self, model: Any, inputs: dict[str, Any]) -> Any:
        return super()._compute_loss(model, inputs)

    def log_probabilities(self, *given: Any, **named: Any) -> Any:
        """Of the tokens of all replies, with their entropies; the arguments are TRL's."""
        return super()._get_per_token_logps_and_entropies(*given, **named)

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
        return self.loss_of_replies(model, inputs)

    def _get_per_token_logps_and_entropies(self, *given: Any, **named: Any) -> Any:
        return self.log_probabilities(*given, **named)
