"""Roots: the policies that runs start from, trained on what they have mastered. They come from seeds and are kept on disk."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from envtuning import atomic
from envtuning.exam.families import Family
from envtuning.exam.kept import kept_in
from envtuning.exam.policy import Policies
from envtuning.exam.tasks import LetterTasks, Tasks
from envtuning.exam.training import train
from envtuning.trainees.process_state import set_threads

QUESTIONS = 64  # of an update of pretraining
HIGHEST_RATE, RISES = 2e-3, 50  # of pretraining; its last quarter falls to 0


def tasks_of(family: Family, seed: int) -> Tasks:
    if family.content == "reasoning":
        from envtuning.exam.reasoning import ReasoningTasks

        return ReasoningTasks(family, seed)
    return LetterTasks(family, seed)


def root(family: Family, seed: int) -> dict[str, Tensor]:
    """The trained root of this seed, without the policies' axis. It is trained alone, so that it is the same in any exam."""
    path = kept_in() / family.root / f"{seed}.pt"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with set_threads(1):
            policy = pretrained(family, seed)
        with atomic.new_file(path) as draft:
            torch.save({name: weight.detach()[0].clone() for name, weight in policy.named_parameters()}, draft)
    return torch.load(path, weights_only=True)


def pretrained(family: Family, seed: int) -> Policies:
    tasks, rng, last = tasks_of(family, seed), np.random.default_rng([seed, 11]), family.pretrain
    policy = Policies(family, tasks.sizes, [seed])
    which = rng.choice(tasks.pretrained, (1, last, QUESTIONS))
    opt = torch.optim.Adam(policy.parameters(), fused=True)
    rate = lambda update: HIGHEST_RATE * min(1, update / RISES, (last - update) / (last / 4))  # noqa: E731
    train(policy, [tasks], which, [rng], opt, rate, purpose="pretraining")
    return policy


def starting(family: Family, tasks: Sequence[Tasks], seeds: Sequence[int]) -> Policies:
    """Copies of the roots, side by side."""
    policies = Policies(family, tasks[0].sizes, seeds)
    found = [root(family, seed) for seed in seeds]
    with torch.no_grad():
        for name, weight in policies.named_parameters():
            weight.copy_(torch.stack([one[name] for one in found]))
    return policies
