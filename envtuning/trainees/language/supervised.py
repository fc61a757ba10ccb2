"""Supervision: questions and answers as tokens, and one step of cross-entropy on the answers' tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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


def step(model: Any, optimiser: Any, ids: Any, labels: Any, rate: float) -> tuple[float, float]:
    """One update at this learning rate, with the gradient clipped to a norm of 1; returns the loss and the norm before clipping."""
    import torch

    for group in optimiser.param_groups:
        group["lr"] = rate
    loss = taught_loss(model, ids, labels)
    optimiser.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
    return float(loss.detach()), float(norm)


def taught_loss(model: Any, ids: Any, labels: Any) -> Any:
    """Cross-entropy of the taught tokens; the others skip the output layer. Padding is on the right, so no mask is needed."""
    import torch

    hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state[:, :-1]
    following = labels[:, 1:]
    taught = following != IGNORED
    return torch.nn.functional.cross_entropy(model.lm_head(hidden[taught]), following[taught])
