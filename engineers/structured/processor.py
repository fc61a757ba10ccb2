"""The logits processor: masks every token after which the text could no longer match the schema."""

from __future__ import annotations

import json
from typing import Any

import llguidance
import llguidance.hf
import llguidance.torch
import torch
from transformers import LogitsProcessor

from engineers.structured.bounds import room

# Compact but for a space after , and : as models are used to write JSON; free whitespace would never have to end.
LAYOUT: Any = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
HUGE = 1e4  # stands for infinite logits, so that a diverged model still has a softmax


class SchemaLogits(LogitsProcessor):
    """For one reply of one schema (batch of one). Guarantees a whole JSON text within ``max_tokens`` for any weights.

    When the tokens left are just enough, every open string, list and number is closed as soon as the schema lets it be.
    """

    def __init__(
        self, tokens: llguidance.LLTokenizer, schema: dict[str, Any], *, prompt_length: int, max_tokens: int
    ) -> None:
        needed = room(schema) + 1  # and the token that ends the reply
        if max_tokens < needed:
            raise ValueError(f"max_tokens={max_tokens}: the shortest reply may take {needed}; allow at least that many")
        grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides=LAYOUT)
        self.matcher = llguidance.LLMatcher(tokens, grammar)
        self._raise_on_error()
        self.mask = llguidance.torch.allocate_token_bitmask(1, tokens.vocab_size)
        self.eos = tokens.eos_token
        self.seen = prompt_length  # tokens that the matcher knows of, or that are none of its business
        self.wind_up_at = prompt_length + max_tokens - needed
        self.closers = [_single_tokens(tokens, marks) for marks in ('"}]', ",")]  # what ends a part; what ends a number

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
            return _only([self.eos], vocabulary)
        llguidance.torch.fill_next_token_bitmask(self.matcher, self.mask)
        allowed = _unpack(self.mask[0], vocabulary)
        if self.seen >= self.wind_up_at:
            for closers in self.closers:
                closing = allowed & _only(closers, vocabulary)
                if closing.any():
                    return closing
        return allowed

    def _raise_on_error(self) -> None:
        if self.matcher.is_error():
            raise ValueError(f"the schema cannot be decoded: {self.matcher.get_error()}")


def token_view(tokenizer: Any, vocabulary: int) -> llguidance.LLTokenizer:
    """A fast tokenizer as the matcher sees it; ``vocabulary`` is the width of the model's logits. Slow to make: keep it."""
    if not getattr(tokenizer, "is_fast", False):
        raise ValueError(f"{type(tokenizer).__name__} is not a fast tokenizer: load it with use_fast=True")
    return llguidance.hf.from_tokenizer(tokenizer, n_vocab=max(vocabulary, len(tokenizer)))


def _single_tokens(tokens: llguidance.LLTokenizer, marks: str) -> list[int]:
    encoded = [tokens.tokenize_str(mark) for mark in marks]
    return [ids[0] for ids in encoded if len(ids) == 1]


def _only(ids: list[int], vocabulary: int) -> torch.Tensor:
    only = torch.zeros(vocabulary, dtype=torch.bool)
    only[ids] = True
    return only


def _unpack(words: torch.Tensor, vocabulary: int) -> torch.Tensor:
    """32 flags an int32, lowest bit first, as bool[vocabulary]; tokens beyond the words are not allowed."""
    bits = (words.unsqueeze(-1) >> torch.arange(32, dtype=torch.int32)) & 1
    flags = bits.flatten().bool()[:vocabulary]
    return torch.nn.functional.pad(flags, (0, vocabulary - flags.numel()), value=False)
