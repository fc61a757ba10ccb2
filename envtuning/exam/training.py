"""Training of several policies side by side: by right answers or by reward, and tests of what they can do.

Every policy has its own random numbers, so it learns the same whoever learns beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from envtuning.exam.families import Family
from envtuning.exam.policy import Policies
from envtuning.exam.tasks import Ints, Purpose, Tasks

Floats = NDArray[np.float64]
Rate = Callable[[int], float]  # the learning rate of an update
AT_ONCE = 1_200  # rows of a test in one pass


class Seen(NamedTuple):
    """What training showed of each answer, before it was learnt from: policy, update, answer."""

    success: NDArray[np.bool_]
    score: Floats  # the share of letters right


class Batch(NamedTuple):
    """Questions and right answers: policy, row, and then tokens."""

    tokens: Tensor
    answer: Tensor  # bool: which letters count

    @property
    def wanted(self) -> Tensor:
        return self.tokens[..., -self.answer.shape[-1] :]


def optimiser(policies: Policies, family: Family) -> torch.optim.Adam:
    betas = (0.9, 0.99 if family.learning == "reward" else 0.999)
    return torch.optim.Adam(policies.parameters(), betas=betas, fused=True)


def made(tasks: Sequence[Tasks], which: Ints, rngs: Sequence[np.random.Generator], purpose: Purpose) -> Batch:
    """A row for each task in ``which``, whose first axis is the policy."""
    flat = zip(tasks, which.reshape(len(tasks), -1), rngs, strict=True)
    rows = [each.make(tags, rng, purpose) for each, tags, rng in flat]
    tokens, answer = (torch.from_numpy(np.stack(part)) for part in zip(*rows, strict=True))
    return Batch(tokens.view(*which.shape, -1), answer.view(*which.shape, -1))


def train(
    policies: Policies, tasks: Sequence[Tasks], which: Ints, rngs: Sequence[np.random.Generator], opt: torch.optim.Adam,
    rate: Rate, *, replies: int | None = None, purpose: Purpose = "training",
) -> Seen:  # fmt: skip
    """Updates on the tasks of ``which`` (policy, update, question); by reward if ``replies`` answers are sampled to each question."""
    n, updates, questions = which.shape
    batch = made(tasks, which, rngs, purpose)
    shape = (n, updates, questions * (replies or 1))
    success, score = np.empty(shape, bool), np.empty(shape)
    for update in range(updates):
        for group in opt.param_groups:
            group["lr"] = rate(update)
        part = Batch(batch.tokens[:, update], batch.answer[:, update])
        right, loss = supervised(policies, part) if replies is None else by_reward(policies, part, replies, rngs)
        counted = torch.ones_like(right) if replies is not None else part.answer
        success[:, update] = (right | ~counted).all(-1).numpy()
        score[:, update] = ((right & counted).sum(-1) / counted.sum(-1)).double().numpy()
        opt.zero_grad()
        loss.backward()
        policies.clip()
        opt.step()
    return Seen(success, score)


def supervised(policies: Policies, batch: Batch) -> tuple[Tensor, Tensor]:
    """Which letters are the likeliest, each after the right ones before it, and the loss on right answers."""
    logits, wanted = policies(batch.tokens), batch.wanted.clamp(max=policies.symbols - 1)
    weight = batch.answer.float() / batch.answer.float().sum((1, 2), keepdim=True)
    losses = F.cross_entropy(logits.flatten(0, 2), wanted.flatten(), reduction="none")
    return logits.argmax(-1) == wanted, (losses * weight.flatten()).sum()


def by_reward(
    policies: Policies, batch: Batch, replies: int, rngs: Sequence[np.random.Generator]
) -> tuple[Tensor, Tensor]:
    """Which letters of the sampled answers are right, and the policy-gradient loss: 1 for a whole answer, less its group's mean."""
    _, questions, letters = batch.answer.shape
    luck = torch.from_numpy(np.stack([rng.random((questions, replies, letters)) for rng in rngs])).float()
    tokens = sampled(policies, batch.tokens, luck)
    said = tokens[..., -letters:]
    right = said == batch.wanted[:, :, None]
    paid = right.all(-1).float()
    advantage = paid - paid.mean(-1, keepdim=True)
    told = advantage.abs().amax(-1)  # 0 where all answers to a question are paid alike: these teach nothing
    most = max(1, int((told > 0).sum(-1).max()))
    kept = told.argsort(dim=-1, descending=True, stable=True)[:, :most]
    advantage, tokens = (
        torch.stack([part[at] for part, at in zip(of, kept, strict=True)]) for of in (advantage, tokens)
    )
    taken = tokens.flatten(1, 2)
    letter = policies(taken).log_softmax(-1).gather(-1, taken[..., -letters:, None]).squeeze(-1)
    return right.flatten(1, 2), -(advantage.flatten(1) * letter.sum(-1)).sum() / (questions * replies)


@torch.no_grad()
def sampled(policies: Policies, questions: Tensor, luck: Tensor) -> Tensor:
    """Tokens of policy, question, reply: each letter is drawn by a number in ``luck`` (policy, question, reply, letter)."""
    n, _, replies, letters = luck.shape
    tokens = questions[:, :, None].repeat(1, 1, replies, 1)
    for place in range(letters):
        read = questions if place == 0 else tokens.flatten(1, 2)  # the first letter of all replies follows one question
        chances = policies(read)[:, :, place].softmax(-1).cumsum(-1).view(n, len(questions[0]), -1, 1, policies.symbols)
        drawn = (chances.squeeze(-2) < luck[..., place, None]).sum(-1)
        tokens[..., place - letters] = drawn.clamp(max=policies.symbols - 1)
    return tokens


@torch.no_grad()
def tested(policies: Policies, tasks: Sequence[Tasks], cases: int, rngs: Sequence[np.random.Generator]) -> Floats:
    """Of each policy and task: the share of fresh questions answered right.

    One pass decodes all: the greedy answer is the right one exactly where each letter is the likeliest after the right ones.
    """
    n, count = len(tasks), len(tasks[0].names)
    batch = made(tasks, np.tile(np.repeat(np.arange(count), cases), (n, 1)), rngs, "test")
    found = torch.cat([policies(part).argmax(-1) for part in batch.tokens.split(AT_ONCE, 1)], 1) == batch.wanted
    found, answer = (part.view(n, count, cases, -1) for part in (found, batch.answer))
    return (found | ~answer).all(3).double().mean(2).numpy()
