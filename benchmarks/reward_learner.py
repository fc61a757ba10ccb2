"""The learner of ``benchmarks.reward_study``: training by reward with or without refill, which counts the replies that it takes.

An update draws questions by the shares, one after another, and samples sixteen replies to each. A group has a *signal* if its replies
are not all paid alike. Without refill, an update has as many groups as the family's batch. With refill, questions are drawn until
the batch is full of groups with a signal, or a cap is reached. The loss is a mean over the groups with a signal, in either case.
With a KL term, its weight times the divergence from the policy at the start is added, a mean over all replies of the update.
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import Tensor

from envtuning.exam.families import Family
from envtuning.exam.policy import Policies
from envtuning.exam.session import Session, Shown, Start, shown
from envtuning.exam.tasks import Ints
from envtuning.exam.training import Floats, made, tested

CAP = 3  # times the batch: questions that an update with refill may draw
CASES = 64  # questions of a test to each task, as many as there are; all tests of a run ask the same


class Learner:
    """One training. Its session has the policy, the tasks, the optimiser and the random numbers."""

    def __init__(self, family: Family, start: Start, stages: int, *, refill: bool, kl: float = 0.0) -> None:
        self.session = Session(family, [start], stages)
        self.kl, self.begun_with = kl, copy.deepcopy(self.session.policies)
        self.questions = family.batch * (CAP if refill else 1)  # of an update, at most
        self.updates = self.replies = self.trained = 0  # of the replies, those that a gradient came from
        self.drawn = np.zeros(family.tasks, int)  # replies by task

    def update(self, shares: Floats) -> Shown:
        """One step, and the replies that it took."""
        session, family = self.session, self.session.family
        rng = session.draws[0]
        which = rng.choice(family.tasks, (1, self.questions), p=shares / shares.sum())
        batch = made(session.tasks, which, session.draws, "training")
        luck = rng.random((self.questions, family.replies, batch.answer.shape[-1]))
        replies = replies_to(session.policies, batch.tokens[0], torch.from_numpy(luck).float())
        right = replies[..., -luck.shape[-1] :] == batch.wanted[0, :, None]
        paid = right.all(-1)
        signal = paid.any(-1) & ~paid.all(-1)
        taken = questions_taken(signal.numpy(), family.batch)
        kept = signal[:taken].nonzero().flatten()
        self._step(replies[kept], paid[kept].float(), replies[:taken])

        asked, score = which[0, :taken], right[:taken].double().mean(-1).numpy()
        self.updates += 1
        self.replies += taken * family.replies
        self.trained += len(kept) * family.replies
        self.drawn += np.bincount(asked, minlength=family.tasks) * family.replies
        return shown(asked[None], paid[:taken].numpy(), score, family.replies)

    def _step(self, replies: Tensor, paid: Tensor, taken: Tensor) -> None:
        """Of groups with a signal, and of all: question, reply. Without a loss, the policy and the optimiser stay as they are."""
        if not len(replies) and not self.kl:
            return
        session, family = self.session, self.session.family
        for group in session.opt.param_groups:
            group["lr"] = family.rate * min(1.0, (self.updates + 1) / (family.warm + 1))
        session.opt.zero_grad()
        if len(replies):
            loss_of(session.policies, replies, paid).backward()
        if self.kl:
            (self.kl * divergence(session.policies, self.begun_with, taken)).backward()
        session.policies.clip()
        session.opt.step()

    def tested(self) -> Floats:
        """Success of each task."""
        session, start = self.session, self.session.starts[0]
        rng = np.random.default_rng([start.root, start.training, 4])
        return tested(session.policies, session.tasks, CASES, [rng])[0]


def questions_taken(signal: np.ndarray, batch: int) -> int:
    """How many of the questions are drawn until the batch is full of those with a signal; all, if it never is."""
    full = np.flatnonzero(signal.cumsum() == batch)
    return int(full[0]) + 1 if len(full) else len(signal)


def loss_of(policies: Policies, replies: Tensor, paid: Tensor) -> Tensor:
    """The policy gradient's loss: 1 for a right reply, less the mean of its group, over all replies given."""
    advantage = paid - paid.mean(-1, keepdim=True)
    rows = replies.flatten(0, 1)
    logits = answers_after(policies, rows)
    letters = rows[:, -logits.shape[1] :, None]
    chosen = logits.log_softmax(-1).gather(-1, letters).squeeze(-1)
    return -(advantage.flatten() * chosen.sum(-1)).mean()


def divergence(policies: Policies, begun_with: Policies, replies: Tensor) -> Tensor:
    """The KL divergence from the policy at the start, summed over the letters of a reply; the mean over all replies."""
    rows = replies.flatten(0, 1)
    now = answers_after(policies, rows).log_softmax(-1)
    with torch.no_grad():
        before = answers_after(begun_with, rows).log_softmax(-1)
    return (now.exp() * (now - before)).sum((1, 2)).mean()


@torch.no_grad()
def replies_to(policies: Policies, questions: Tensor, luck: Tensor) -> Tensor:
    """Tokens of question, reply. Each letter is drawn by a number in ``luck`` (question, reply, letter)."""
    letters = luck.shape[-1]
    tokens = questions[:, None].repeat(1, luck.shape[1], 1)
    tokens[..., -letters:] = 0  # what is not drawn yet
    for place in range(letters):
        logits = answers_after(policies, tokens.flatten(0, 1))[:, place]
        chances = logits.softmax(-1).cumsum(-1).view(*luck.shape[:2], -1)
        drawn = (chances < luck[..., place, None]).sum(-1)
        tokens[..., place - letters] = drawn.clamp(max=policies.symbols - 1)
    return tokens


def answers_after(policies: Policies, rows: Tensor) -> Tensor:
    """Logits of row, letter of the answer, letter. Rows that read alike, as most replies to a question do, pass the policy once."""
    different, which = np.unique(read_as_numbers(rows, policies.words), return_index=True, return_inverse=True)[1:]
    return policies(rows[None, different])[0][which]


def read_as_numbers(rows: Tensor, words: int) -> Ints:
    """A number for what the policy reads of each row: all tokens but the last."""
    read = rows[:, :-1].numpy()
    return read @ words ** np.arange(read.shape[1])
