"""A model in this process. It may be under training: answering does not change its state."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from engineers.backends.making import engineer_on
from engineers.backends.plain_text import missing_template
from engineers.engineer import Engineer
from engineers.model.chat import ChatError, Completion, Message, Rejected, TooLong
from engineers.shared.extras import require

THOUGHT_BEGIN, THOUGHT_END = "<think>", "</think>"
ONE_AT_A_TIME = threading.Lock()  # answers repeat by the random state, which the whole process shares


@dataclass
class LiveChat:
    """Asks a transformers model and its tokenizer; with a schema the reply always matches it, whatever the weights are.

    The answer is a function of (weights, seed, messages). Training modes, gradients and random state stay as they were.
    """

    language_model: Any = field(repr=False)
    tokenizer: Any = field(repr=False)
    model: str = "live/model"  # its name in transcripts
    temperature: float = 0.7  # 0: always the likeliest token
    seed: int = 0
    thinking: int = 0  # tokens that the model may think before it answers, out of its max_tokens; 0: it does not
    constrained: bool = True  # False: the schema is only in the prompt
    longest_string: int = 300  # characters of a free text in a constrained reply
    time_limit: float | None = None  # seconds for one reply; None: as long as its tokens take

    def complete(self, messages: list[Message], schema: dict[str, Any] | None, *, max_tokens: int) -> Completion:
        """One reply of at most ``max_tokens``. Raises only ``ChatError``."""
        import torch

        seed = _seed(self.seed, messages)
        try:
            with ONE_AT_A_TIME, as_found(self.language_model, seed):
                return self._reply(messages, schema, max_tokens)
        except ChatError:
            raise
        except torch.OutOfMemoryError:
            raise TooLong("the model ran out of memory: shorten the prompt or lower max_tokens") from None
        except Exception as error:  # a model's and a tokenizer's code may raise any error
            raise Rejected(f"the model cannot answer ({type(error).__name__}: {error})") from error

    def _reply(self, messages: list[Message], schema: dict[str, Any] | None, max_tokens: int) -> Completion:
        from engineers.model.structured import SchemaLogits, finite

        begin = time.monotonic()
        prompt = self._prompt(messages)
        limit = self._fitting(prompt.shape[1], max_tokens)
        start = self._think(prompt, min(self.thinking, limit // 2)) if self.thinking else prompt
        left = limit - (start.shape[1] - prompt.shape[1])
        processors = []
        if schema is not None and self.constrained:
            bounded = finite(schema, self.longest_string)
            processors = [SchemaLogits(self._tokens, bounded, prompt_length=start.shape[1], max_tokens=left)]
        written = self._generate(start, left, processors=processors)
        text = self.tokenizer.decode(written[0, prompt.shape[1] :], skip_special_tokens=True)
        completion = Completion(text, prompt.shape[1], written.shape[1] - prompt.shape[1], cost=0.0)
        if int(written[0, -1]) not in self._eos:
            if self.time_limit is not None and time.monotonic() - begin >= self.time_limit:
                raise Rejected(f"no whole reply within time_limit={self.time_limit:g} s: allow more time", completion)
            raise TooLong(f"the reply was cut after {limit} tokens: write less, or raise max_tokens", completion)
        return completion

    def _prompt(self, messages: list[Message]) -> Any:
        """int64[1, length]: the conversation in the model's chat template, up to its answer."""
        from jinja2 import TemplateError

        try:
            return self._encode(self._templated(messages))
        except TemplateError:  # some templates know no system turn
            return self._encode(self._templated(_without_system(messages)))

    def _templated(self, messages: list[Message]) -> str:
        """Some templates always begin a thought; for a model that should not think, it ends at once."""
        text = self.tokenizer.apply_chat_template(
            messages,
            chat_template=missing_template(self.tokenizer),
            tokenize=False,
            add_generation_prompt=True,
            enable_thinking=self.thinking > 0,
        )
        begun = not self.thinking and text.rstrip().endswith(THOUGHT_BEGIN)
        return f"{text.rstrip()}\n\n{THOUGHT_END}\n\n" if begun else text

    def _encode(self, text: str) -> Any:
        ids = self.tokenizer(text, add_special_tokens=False, return_tensors="pt").input_ids
        return ids.to(self.language_model.device)

    def _fitting(self, prompt: int, max_tokens: int) -> int:
        """Tokens that the reply may have in the model's context. Raises ``TooLong`` if the prompt fills the context."""
        context = getattr(self.language_model.config, "max_position_embeddings", None)
        if context is not None and prompt >= context:
            raise TooLong(f"the prompt has {prompt} tokens, the model reads at most {context}: shorten it")
        return max_tokens if context is None else min(max_tokens, context - prompt)

    def _think(self, prompt: Any, max_tokens: int) -> Any:
        """int64[1, length]: the prompt and the model's thoughts, which end by themselves or at their limit."""
        import torch

        thought = self._generate(prompt, max_tokens, stop=THOUGHT_END)
        text = self.tokenizer.decode(thought[0, prompt.shape[1] :], skip_special_tokens=True)
        closing = "\n\n" if text.rstrip().endswith(THOUGHT_END) else f"\n{THOUGHT_END}\n\n"
        if thought.shape[1] > prompt.shape[1] and int(thought[0, -1]) in self._eos:
            thought = thought[:, :-1]
        return torch.cat([thought, self._encode(closing)], dim=1)

    def _generate(self, ids: Any, max_tokens: int, *, processors: Sequence[Any] = (), stop: str | None = None) -> Any:
        """int64[1, length]: the ids and the model's tokens after them."""
        import torch
        from transformers import GenerationConfig

        options = GenerationConfig(
            max_new_tokens=max_tokens,
            do_sample=self.temperature > 0,
            temperature=self.temperature or None,
            eos_token_id=self._eos,
            pad_token_id=self._eos[0],
            stop_strings=stop,
            max_time=self.time_limit,
            use_cache=True,
        )
        return self.language_model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            generation_config=options,
            logits_processor=list(processors),
            tokenizer=self.tokenizer if stop else None,
        )

    @cached_property
    def _eos(self) -> list[int]:
        """Constrained decoding ends with the first."""
        known = end_tokens(self.language_model, self.tokenizer)
        if not known:
            raise ValueError("the tokenizer has no end-of-sequence token: set tokenizer.eos_token")
        return known

    @cached_property
    def _tokens(self) -> Any:
        from engineers.model.structured import TokenView

        return TokenView.of(self.tokenizer, self.language_model.get_output_embeddings().weight.shape[0])


def end_tokens(model: Any, tokenizer: Any) -> list[int]:
    """The tokens that end a reply: the tokenizer's first, then those of the model."""
    named = getattr(model.generation_config, "eos_token_id", None)
    ids = [tokenizer.eos_token_id, *(named if isinstance(named, list) else [named])]
    return list(dict.fromkeys(index for index in ids if index is not None))


@contextmanager
def as_found(model: Any, seed: int) -> Iterator[None]:
    """Evaluation mode, no gradients and a separate random state; afterwards all three are restored."""
    import torch

    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    with modes_kept(model), torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


@contextmanager
def modes_kept(model: Any) -> Iterator[None]:
    """Evaluation mode and no gradients; afterwards every module is in the mode that it was in.

    A trainer wraps the model's forward pass at its first step, and a wrapped pass rounds differently. Inside, the class's own pass
    is used, so the same weights give the same answer before and after.
    """
    import torch

    modes = {module: module.training for module in model.modules()}
    wrapped = model.__dict__.pop("forward", None)
    try:
        with torch.no_grad():
            model.eval()
            yield
    finally:
        if wrapped is not None:
            model.__dict__["forward"] = wrapped
        for module, training in modes.items():
            module.training = training


def _without_system(messages: list[Message]) -> list[Message]:
    """The same conversation with the system's words at the start of the user's."""
    instructions = [message["content"] for message in messages if message["role"] == "system"]
    first, *rest = [message for message in messages if message["role"] != "system"]
    return [{**first, "content": "\n\n".join([*instructions, first["content"]])}, *rest]


def _seed(seed: int, messages: list[Message]) -> int:
    """Another seed for each conversation, so that a model can answer differently after an error."""
    digest = hashlib.sha256(json.dumps([seed, messages], sort_keys=True).encode()).digest()
    return int.from_bytes(digest[:7])


def make(model: Any, tokenizer: Any = None, *, called: str = "live/model", **options: Any) -> Engineer:
    """An engineer on a model that is in memory: ``make(model=…, tokenizer=…)``; ``called`` names it in transcripts."""
    require("torch", "transformers", "llguidance", extra="local")
    if isinstance(model, str) or tokenizer is None:
        raise ValueError("live takes objects, not names: engineers.backends.live.make(model=…, tokenizer=…)")
    return engineer_on(LiveChat, model, {"tokenizer": tokenizer, "model": called, **options})
