"""``gym.make("EngineerExam-v0", family=…)``: an environment in which engineers are trained. An episode is a training."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import torch

from envtuning.errors import SpecError
from envtuning.exam.families import DECISIONS, Family, named
from envtuning.exam.session import Session, Start
from envtuning.exam.sitting import halves
from envtuning.exam.training import Floats

ByName = dict[str, Any]
ROOTS = 200  # an episode begins at one of so many roots, which are trained when they are first used


class EngineerExamEnv(gym.Env[ByName, Floats]):
    """Observation: the last stage's report. Action: weights of the tasks in the next stage. The reward comes at the end: success over all tasks,
    less ``baseline``, a constant of yours. Exams use other roots than the first ``roots``.
    """

    def __init__(
        self, family: str | Family = "codes-slow", decisions: int = DECISIONS, roots: int = ROOTS, baseline: float = 0.0
    ) -> None:
        self.family = named(family) if isinstance(family, str) else family
        self.family.stage(decisions)
        self.decisions, self.roots, self.baseline = decisions, roots, baseline
        n = self.family.tasks
        by_half = gym.spaces.Box(0.0, 1.0, (2, n))  # of the last stage; 0 where there were no answers
        self.observation_space = gym.spaces.Dict(
            {"answers": gym.spaces.Box(0.0, np.inf, (2, n)), "success": by_half, "score": by_half,
             "shares": gym.spaces.Box(0.0, 1.0, (n,)), "stage": gym.spaces.Discrete(decisions + 1)}
        )  # fmt: skip
        self.action_space = gym.spaces.Box(0.0, 1.0, (n,))

    def reset(self, *, seed: int | None = None, options: ByName | None = None) -> tuple[ByName, ByName]:
        """The first stage draws evenly. ``options={"root": 7, "training": 1}`` chooses the training."""
        super().reset(seed=seed)
        torch.set_num_threads(1)
        root, training = (int(self.np_random.integers(of)) for of in (self.roots, 2**31))
        start = Start(**{"root": root, "training": training, **(options or {})})
        self.session = Session(self.family, [start], self.decisions)
        return self._trained(np.ones(self.family.tasks)), {"root": start.root, "training": start.training}

    def step(self, action: Floats) -> tuple[ByName, float, bool, bool, ByName]:
        weights, n = np.asarray(action, float), self.family.tasks
        if weights.shape != (n,) or not (weights >= 0).all() or np.isinf(weights.sum()):
            raise SpecError(f"action {action!r:.60}: give {n} finite weights of at least 0, one for each task")
        seen = self._trained(weights if weights.sum() > 0 else np.ones(n))
        if self.session.stage < self.decisions:
            return seen, 0.0, False, False, {}
        success = self.session.test()[0]
        end = float(success.mean())
        return seen, end - self.baseline, True, False, {"success": end, "success_by_task": success}

    def _trained(self, weights: Floats) -> ByName:
        n, shares = self.family.tasks, weights / weights.sum()
        sums = []
        for half in halves(self.session.train(shares[None])):
            sums.append([np.bincount(half.task[0], of, n) for of in (None, half.success[0], half.score[0])])
        answers, success, score = np.array(sums, np.float32).transpose(1, 0, 2)
        rates = {name: of / np.maximum(answers, 1) for name, of in (("success", success), ("score", score))}
        return {"answers": answers, **rates, "shares": shares.astype(np.float32), "stage": self.session.stage}
