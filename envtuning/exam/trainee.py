"""The exam's learner as a trainee of the loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engineers.from_file import PLAIN, reads
from engineers.roles import shares_in
from envtuning.exam.policy import Policies
from envtuning.exam.session import Session, Shown, Start
from envtuning.exam.sitting import HOW_JUDGED, halves
from envtuning.exam.tasks import LetterTasks, Purpose, Rows
from envtuning.exam.world import ExamWorld, said
from envtuning.outcomes import Tally
from envtuning.trainees.base import OUTCOMES, Metrics, OnIteration, Trainee
from envtuning.trainees.process_state import set_threads
from envtuning.trainees.tensors import load_tensors, raise_unless_fits
from envtuning.worlds.text_player import Messages
from envtuning.worlds.world import fingerprints_of


@reads({"training": PLAIN})
class ExamTrainee(Trainee):
    """A small transformer that starts from its world's root. ``training`` is the seed of its draws; by default that of the run."""

    in_words = "A small transformer, trained on fresh questions of the tasks in use."
    outcomes_in_words = HOW_JUDGED["supervised"]
    form = "replies"
    units = ("samples",)
    reports = frozenset({"success_rate"})

    def __init__(
        self, *, world: ExamWorld, capacity: Mapping[str, Any], exclude: Sequence[Any] = (), seed: int = 0, training: int | None = None
    ) -> None:  # fmt: skip
        start = Start(world.root, seed if training is None else training)
        self.world, self.session = world, Session(world.family, [start])
        self.outcomes_in_words = HOW_JUDGED[world.family.learning].format(replies=world.family.replies)
        self.session.tasks = [HeldOut(world, fingerprints_of(exclude))]

    @classmethod
    def check_world(cls, world: Any) -> None:
        if not isinstance(world, ExamWorld):
            raise ValueError("the trainee 'exam' learns in the world 'exam' alone")

    @set_threads(1)  # as a sitting has, of which it is the same training
    def train(self, config: Any, budget: int, *, seed: int, on_iteration: OnIteration | None = None) -> Metrics:
        """The draws come from the session's own random numbers, which are saved with it; ``seed`` is not used."""
        shares = shares_in(config)
        parts = np.array([[shares.get(name, 0.0) for name in self.world.letters.names]])
        family = self.world.family
        updates = max(1, round(budget / family.batch))
        shown = self.session.train(parts, updates)
        asked = updates * family.batch
        for samples, half in zip((asked - asked // 2, asked // 2), halves(shown), strict=True):
            if on_iteration is not None:
                rate = float(half.success.mean())
                on_iteration({"samples": float(samples), "success_rate": rate, OUTCOMES: self._tally(half)})
        return {"samples": float(asked), "success_rate": float(shown.success.mean())}

    def _tally(self, shown: Shown) -> Tally:
        tally = Tally()
        names = np.array(self.world.letters.names)[shown.task[0]]
        tally.observe_many(names, shown.success[0], shown.score[0], shown.further[0])
        return tally

    def policy(self) -> Replies:
        return Replies(self.world, deepcopy(self.session.policies))

    def save(self, folder: Path) -> None:
        one = self.session
        torch.save(
            {"weights": one.policies.state_dict(), "optimiser": one.opt.state_dict(), "stage": one.stage, "draws": one.draws[0].bit_generator.state},
            folder / "trainee.pt",
        )  # fmt: skip

    def load(self, folder: Path) -> None:
        kept, one = load_tensors(folder / "trainee.pt"), self.session
        one.policies.load_state_dict(kept["weights"])
        one.opt.load_state_dict(kept["optimiser"])
        raise_unless_fits(one.opt)
        one.stage, one.draws[0].bit_generator.state = kept["stage"], kept["draws"]

    def close(self) -> None:
        """Nothing to release."""


class HeldOut(LetterTasks):
    """Tasks that ask another question instead of one that is held out, which happens about once in a training."""

    def __init__(self, world: ExamWorld, taken: frozenset[Any]) -> None:
        super().__init__(world.family, world.root)
        self.world, self.taken = world, taken

    def make(self, which: Any, rng: np.random.Generator, purpose: Purpose = "training") -> Rows:
        rows, again = super().make(which, rng, purpose), np.random.default_rng(0)
        while len(held := self._held(rows)):
            other = super().make(which[held], again, purpose)
            rows.tokens[held], rows.answer[held] = other
        return rows

    def _held(self, rows: Rows) -> Any:
        asked = self.world.in_words(rows) if self.taken else []
        return np.flatnonzero([self.world.digest_of(one) in self.taken for one in asked])


class Replies:
    """The policy: it writes its likeliest letters, one after another."""

    def __init__(self, world: ExamWorld, policies: Policies) -> None:
        self.world, self.policies = world, policies

    @set_threads(1)
    @torch.no_grad()
    def reply(self, conversations: Sequence[Messages], *, seed: int) -> list[str]:
        questions = [talk[-1]["content"] for talk in conversations]
        tokens = torch.from_numpy(self.world.rows_of(questions))[None]
        letters = self.world.letters.answer
        for place in range(letters):
            tokens[0, :, place - letters] = self.policies(tokens)[0, :, place].argmax(-1)
        lengths = [len(question.partition(": ")[2]) for question in questions]
        return [said(row[-letters:][:length]) for row, length in zip(tokens[0].numpy(), lengths, strict=True)]
