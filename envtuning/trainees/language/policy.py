"""The model as a policy of replies: a batch of conversations is one call of generation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engineers.backends.live import as_found
from envtuning.trainees.language.tokenizer import prompt_ids

Conversation = Sequence[dict[str, str]]


@dataclass(frozen=True)
class Reply:
    """What the model wrote."""

    text: str
    tokens: int = 0  # of prompt and reply together
    truncated: bool = False  # whether it was cut at its limit


class ReplyPolicy:
    """A transformers model that answers conversations; weights, modes and random state stay as they were."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        max_tokens: int = 512,
        temperature: float = 0.0,
        batch: int = 256,
    ) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.max_tokens, self.temperature, self.batch = max_tokens, temperature, batch

    def reply(self, conversations: Sequence[Conversation], *, seed: int = 0) -> list[Reply]:
        """One reply to each, a function of (weights, conversations, seed)."""
        replies: list[Reply] = []
        with as_found(self.model, seed):
            for begin in range(0, len(conversations), self.batch):
                replies += self._generate(conversations[begin : begin + self.batch])
        return replies

    def _generate(self, conversations: Sequence[Conversation]) -> list[Reply]:
        import torch
        from transformers import GenerationConfig

        prompts = [prompt_ids(self.tokenizer, [dict(turn) for turn in talk]) for talk in conversations]
        longest = max(map(len, prompts))
        pad, ends = self.tokenizer.pad_token_id, self.eos
        device = self.model.device
        ids = torch.tensor([[pad] * (longest - len(row)) + row for row in prompts], device=device)
        mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in prompts], device=device)
        written = self.model.generate(
            input_ids=ids,
            attention_mask=mask,
            generation_config=GenerationConfig(
                max_new_tokens=self.max_tokens,
                do_sample=self.temperature > 0,
                temperature=self.temperature or None,
                eos_token_id=ends,
                pad_token_id=pad,
            ),
        )[:, longest:].tolist()
        replies = []
        for prompt, row in zip(prompts, written, strict=True):
            end = next((at for at, token in enumerate(row) if token in ends), None)
            kept = row if end is None else row[: end + 1]
            text = self.tokenizer.decode(kept, skip_special_tokens=True)
            replies.append(Reply(text, tokens=len(prompt) + len(kept), truncated=end is None))
        return replies

    @property
    def eos(self) -> list[int]:
        """The tokens that end a reply: the tokenizer's, and those that the model names."""
        named = getattr(self.model.generation_config, "eos_token_id", None)
        ids = [self.tokenizer.eos_token_id, *(named if isinstance(named, list) else [named])]
        return list(dict.fromkeys(index for index in ids if index is not None))
