"""Supervision: questions and answers as tokens, and one step of cross-entropy on the answers' tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from envtuning.trainees.language.tokenizer import templated
from envtuning.worlds.world import Lesson

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

IGNORED = -100  # label of a token that is not taught

Taught = tuple[list[int], list[int]]  # ids and labels of a lesson, equally long


def tokens_of(tokenizer: PreTrainedTokenizerBase, lessons: Sequence[Lesson]) -> list[Taught]:
    """Each lesson's question in the chat template, with its answer; only the answer and its end are taught."""
    asked = [templated(tokenizer, [{"role": "user", "content": lesson.question}]) for lesson in lessons]
    questions = tokenizer(asked, add_special_tokens=False).input_ids
    answers = tokenizer([lesson.answer for lesson in lessons], add_special_tokens=False).input_ids
    ended = [[*answer, tokenizer.eos_token_id] for answer in answers]
    return [(asked + said, [IGNORED] * len(asked) + said) for asked, said in zip(questions, ended, strict=True)]


def padded(taught: Sequence[Taught], pad: int) -> tuple[Any, Any]:
    """(ids, labels), int64[batch, length] each, padded on the right."""
    import torch

    longest = max(len(ids) for ids, _ in taught)
    ids = torch.tensor([row + [pad] * (longest - len(row)) for row, _ in taught])
    labels = torch.tensor([row + [IGNORED] * (longest - len(row)) for _, row in taught])
    return ids, labels


class Updated(NamedTuple):
    """One update: its loss, the gradient's norm before clipping, and how the model stood to each lesson before it."""

    loss: float
    norm: float
    right: list[bool]  # whether its likeliest tokens, each after the right ones before it, are the whole answer
    parts: list[float]  # what part of the answer's tokens they are; the end of the answer is not counted


def step(model: Any, optimiser: Any, ids: Any, labels: Any, rate: float) -> Updated:
    """One update at this learning rate, with the gradient clipped to a norm of 1."""
    import torch

    for group in optimiser.param_groups:
        group["lr"] = rate
    logits, following, taught = taught_logits(model, ids, labels)
    loss = torch.nn.functional.cross_entropy(logits, following)
    optimiser.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
    return Updated(float(loss.detach()), float(norm), *_judged(logits.detach(), following, taught))


def taught_logits(model: Any, ids: Any, labels: Any) -> tuple[Any, Any, Any]:
    """Logits and right values of the taught tokens, and where these are: bool[batch, length - 1].

    The others skip the output layer. Padding is on the right, so no mask is needed.
    """
    hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state[:, :-1]
    following = labels[:, 1:]
    taught = following != IGNORED
    return model.lm_head(hidden[taught]), following[taught], taught


def _judged(logits: Any, following: Any, taught: Any) -> tuple[list[bool], list[float]]:
    """For each lesson, whether all taught tokens are the likeliest, and what part of those before the last, which ends the answer."""
    import torch

    hits = logits.argmax(-1) == following
    length = taught.sum(dim=1)
    last = length.cumsum(0) - 1  # the place of each lesson's last token among all taught ones
    lesson = torch.repeat_interleave(torch.arange(len(length), device=length.device), length)
    hit = torch.zeros_like(length).index_add_(0, lesson, hits.to(length.dtype))
    ended = hits[last].to(length.dtype)
    part = torch.where(length > 1, (hit - ended) / (length - 1).clamp(min=1), ended.double())
    return (hit == length).tolist(), part.tolist()
