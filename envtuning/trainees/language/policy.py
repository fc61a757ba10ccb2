"""The model as a policy that replies: one call of generation for a batch of conversations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import torch

from engineers.backends.live import as_found, end_tokens, modes_kept
from envtuning.trainees.language.tokenizer import begun_thought, prompt_ids
from envtuning.trainees.process_state import set_threads
from envtuning.worlds.text_player import Reply

Conversation = Sequence[dict[str, str]]


class ReplyPolicy:
    """A transformers model that answers conversations, without changing its weights, modes or the random state."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        max_tokens: int = 512,
        temperature: float = 0.0,
        batch: int = 256,
        template: Mapping[str, Any] | None = None,
        sampling: Any = None,
        threads: int | None = None,
    ) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.sampling = sampling  # transformers' GenerationConfig for training; None: as for replies
        self.template = dict(template or {})  # switches of the chat template
        self.max_tokens, self.temperature, self.batch = max_tokens, temperature, batch
        self.threads = threads  # of PyTorch on CPU; None: the process's own number

    def reply(self, conversations: Sequence[Conversation], *, seed: int = 0) -> list[Reply]:
        """One reply to each conversation; a function of (weights, conversations, seed)."""
        replies: list[Reply] = []
        with set_threads(self.threads), as_found(self.model, seed):
            for begin in range(0, len(conversations), self.batch):
                replies += self._generate(conversations[begin : begin + self.batch])
        return replies

    def _generate(self, conversations: Sequence[Conversation]) -> list[Reply]:
        prompts = [self.prompt(talk) for talk in conversations]
        return [self.told(prompt, ids) for prompt, ids in zip(prompts, self._continue(prompts), strict=True)]

    def told(self, prompt: Sequence[int], written: Sequence[int]) -> Reply:
        """The written tokens as a ``Reply``; without an end token it was cut off."""
        text = self.begun + self.tokenizer.decode(written, skip_special_tokens=True)
        cut = written[-1] not in self.eos
        return Reply(text, tokens=len(prompt) + len(written), prompt=len(prompt), truncated=cut)

    @cached_property
    def begun(self) -> str:
        """The beginning of a thought at the prompt's end. Without it, a reply that was cut inside a thought would be read as an answer."""
        return begun_thought(self.tokenizer, **self.template)

    def prompt(self, conversation: Conversation) -> list[int]:
        """The conversation's tokens, up to the model's answer."""
        return prompt_ids(self.tokenizer, conversation, **self.template)

    def sample(self, prompts: Sequence[list[int]]) -> list[list[int]]:
        """The model's tokens after each prompt, sampled from the process's own random state; for training."""
        written: list[list[int]] = []
        with modes_kept(self.model):
            for begin in range(0, len(prompts), self.batch):
                written += self._continue(prompts[begin : begin + self.batch], settings=self.sampling)
        return written

    def _continue(self, prompts: Sequence[list[int]], *, settings: Any = None) -> list[list[int]]:
        """One call of generation; each row includes its end token."""
        from envtuning.trainees.language.read_once import read_before

        settings = settings or self._settings()
        longest = max(map(len, prompts))
        pad, ends = self.tokenizer.pad_token_id, self.eos
        device = self.model.device
        ids = torch.tensor([[pad] * (longest - len(row)) + row for row in prompts], device=device)
        mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in prompts], device=device)
        with _own_habits_aside(self.model):
            read = read_before(self.model, ids, mask)
            rows = self.model.generate(input_ids=ids, attention_mask=mask, generation_config=settings, **read)
        rows = rows[:, longest:].tolist()
        end_of = [next((at + 1 for at, token in enumerate(row) if token in ends), len(row)) for row in rows]
        return [row[:end] for row, end in zip(rows, end_of, strict=True)]

    def _settings(self) -> Any:
        """Settings of sampling: greedy, or the whole distribution at the policy's temperature."""
        from transformers import GenerationConfig

        return GenerationConfig(
            max_new_tokens=self.max_tokens,
            do_sample=self.temperature > 0,
            temperature=self.temperature or None,
            top_k=0 if self.temperature > 0 else None,
            eos_token_id=self.eos,
            pad_token_id=self.tokenizer.pad_token_id,
        )

    @property
    def eos(self) -> list[int]:
        return end_tokens(self.model, self.tokenizer)


def only_tokens(habits: Any) -> Any:
    """A model's ``generation_config`` without its sampling settings: only the tokens that begin, end and pad a reply."""
    from transformers import GenerationConfig

    names = ("bos_token_id", "eos_token_id", "pad_token_id")
    return GenerationConfig(**{name: getattr(habits, name, None) for name in names})


@contextmanager
def _own_habits_aside(model: Any) -> Iterator[None]:
    """Generation with the caller's settings only: transformers would take missing ones from the model's own
    ``generation_config``, such as the top_p or the repetition_penalty of a model from the hub.
    """
    from transformers import GenerationConfig

    from envtuning.trainees.language.read_once import owner

    inner = owner(model)
    habits = inner.generation_config
    inner.generation_config = GenerationConfig()
    try:
        yield
    finally:
        inner.generation_config = habits
