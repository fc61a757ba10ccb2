"""The logits processor: masks every token after which the text could no longer match the schema."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import llguidance
import llguidance.hf
import llguidance.torch
import torch
from transformers import LogitsProcessor

from engineers.model.structured.bounds import room

# Compact but for a space after , and : as models are used to write JSON; free whitespace would never have to end.
LAYOUT: Any = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
CLOSERS = (b'"', b"}", b"]", b",")  # in this order: in a string the others are letters; a number ends before a comma
HUGE = 1e4  # stands for infinite logits, so that a diverged model still has a softmax


@dataclass(frozen=True)
class TokenView:
    """A tokenizer as constrained decoding sees it. Slow to make: keep it."""

    tokens: llguidance.LLTokenizer
    closers: tuple[int, ...]  # tokens that end a part of a text; the end of the whole is first
    zeros: tuple[int, ...]  # digits after which a number below 0 may not have ended yet: -0.000

    @classmethod
    def of(cls, tokenizer: Any, vocabulary: int) -> TokenView:
        """The view of a fast tokenizer; ``vocabulary`` is the width of the model's logits."""
        if not getattr(tokenizer, "is_fast", False):
            raise ValueError(f"{type(tokenizer).__name__} is not a fast tokenizer: load it with use_fast=True")
        tokens = llguidance.hf.from_tokenizer(tokenizer, n_vocab=max(vocabulary, len(tokenizer)))
        written = [tokens.decode_bytes([index]) for index in range(len(tokenizer))]
        found = {text: index for index, text in enumerate(written) if text in CLOSERS}
        zeros = tuple(index for index, text in enumerate(written) if text and not text.strip(b"0"))
        if len(found) < len(CLOSERS):
            raise ValueError(
                f"{type(tokenizer).__name__} has no single token for one of {CLOSERS}: decode without a schema"
            )
        return cls(tokens, (tokens.eos_token, *(found[mark] for mark in CLOSERS)), zeros)


class SchemaLogits(LogitsProcessor):
    """For one reply of one schema (batch of one). Guarantees a whole JSON text within ``max_tokens`` for any weights.

    When the tokens left are just enough, every open string, list and number is closed as soon as the schema allows it.
    """

    def __init__(self, view: TokenView, schema: dict[str, Any], *, prompt_length: int, max_tokens: int) -> None:
        needed = room(schema) + 1  # and the token that ends the reply
        if max_tokens < needed:
            raise ValueError(f"max_tokens={max_tokens}: the shortest reply may take {needed}; allow at least that many")
        grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides=LAYOUT)
        self.matcher = llguidance.LLMatcher(view.tokens, grammar)
        self._raise_on_error()
        self.mask = llguidance.torch.allocate_token_bitmask(1, view.tokens.vocab_size)
        self.seen = prompt_length  # tokens that the matcher has seen, or need not see
        self.wind_up_at = prompt_length + max_tokens - needed
        self.closers, self.zeros = view.closers, list(view.zeros)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        for token in input_ids[0, self.seen :].tolist():
            self.matcher.consume_token(token)
        self.seen = input_ids.shape[1]
        self._raise_on_error()
        scores = torch.nan_to_num(scores.float(), nan=0.0, posinf=HUGE, neginf=-HUGE)
        allowed = self._allowed(scores.shape[-1])
        return scores.masked_fill(~allowed.to(scores.device), -torch.inf)

    def _allowed(self, vocabulary: int) -> torch.Tensor:
        """bool[vocabulary]: the tokens that may come next."""
        if self.matcher.is_stopped():
            return _only(self.closers[0], vocabulary)
        llguidance.torch.fill_next_token_bitmask(self.matcher, self.mask)
        allowed = _unpack(self.mask[0], vocabulary)
        if self.seen >= self.wind_up_at:
            closer = next((token for token in self.closers if allowed[token]), None)
            return self._towards_an_end(allowed) if closer is None else _only(closer, vocabulary)
        return allowed

    def _towards_an_end(self, allowed: torch.Tensor) -> torch.Tensor:
        """Forbid zeros unless only zeros may follow: a bounded number could take zeros for ever and never end."""
        others = allowed.clone()
        others[self.zeros] = False
        return others if others.any() else allowed

    def _raise_on_error(self) -> None:
        if self.matcher.is_error():
            raise ValueError(f"the schema cannot be decoded: {self.matcher.get_error()}")


def _only(token: int, vocabulary: int) -> torch.Tensor:
    only = torch.zeros(vocabulary, dtype=torch.bool)
    only[token] = True
    return only


def _unpack(words: torch.Tensor, vocabulary: int) -> torch.Tensor:
    """32 flags an int32, lowest bit first, as bool[vocabulary]; tokens beyond the words are not allowed."""
    bits = (words.unsqueeze(-1) >> torch.arange(32, dtype=torch.int32)) & 1
    flags = bits.flatten().bool()[:vocabulary]
    return torch.nn.functional.pad(flags, (0, vocabulary - flags.numel()), value=False)
