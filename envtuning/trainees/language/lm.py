"""``LMTrainee``: a small transformer under supervision, on the certified answers of a stage's own cases; it learns in seconds.

``options`` are ``LMOptions``. The model has random weights or is read from a folder. It is saved in transformers' format, so that
the trainee ``grpo`` can continue from its checkpoints. A unit of budget is a question whose answer it is shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import pairwise
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field

from engineers.backends.weights import WEIGHTS, raise_unless_data
from engineers.from_file import DATA, reads
from engineers.knobs import as_text, with_values
from engineers.roles import share_of, slices_in
from engineers.shared import untrusted
from engineers.shared.extras import require
from envtuning.outcomes import Tally
from envtuning.seeds import derive
from envtuning.trainees.base import OUTCOMES, Metrics, OnIteration, Trainee, TrainingDiverged
from envtuning.trainees.language.policy import ReplyPolicy
from envtuning.trainees.language.pretrain import boards_in, pass_on_unseen, raise_unless_unseen
from envtuning.trainees.language.quiet import quiet
from envtuning.trainees.language.small import small_model
from envtuning.trainees.language.state import load_optimiser, load_weights, remove_training_state, save_weights
from envtuning.trainees.language.supervised import Updated, padded, step, tokens_of
from envtuning.trainees.language.tokenizer import sign_tokenizer, small_tokenizer
from envtuning.trainees.language.trainee import summary
from envtuning.trainees.process_state import set_threads
from envtuning.trainees.visited import Visited
from envtuning.worlds.text_scores import BLIND, likeliest
from envtuning.worlds.world import Form, offers

UPDATES = 50  # of an iteration at most; their questions are drawn and encoded together
COUNTED = "updates.json"  # in a checkpoint: the number of updates so far


class LMOptions(BaseModel):
    """What stands under ``trainee.options`` in a run's file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str | None = Field(
        None, description="A transformers folder to begin with; null: random weights of these sizes."
    )
    width: int = Field(64, ge=8, le=4_096, description="Numbers that stand for a token.")
    layers: int = Field(2, ge=1, le=64)
    heads: int = Field(4, ge=1, le=64, description="Attention heads of a layer; the width is a multiple of them.")
    tokens: Literal["signs", "words"] = Field(
        "signs", description="What a token of a new model is: a sign, or a word where the texts of lakes have it."
    )
    batch: int = Field(64, ge=1, le=65_536, description="Questions of an update.")
    learning_rate: float = Field(2e-3, gt=0, le=1.0, description="After the warm-up; the same in every stage.")
    warmup: int = Field(20, ge=0, description="Updates over which the learning rate rises, once in a run.")
    max_tokens: int = Field(32, ge=1, le=4_096, description="Longest reply.")
    torch_threads: int | None = Field(1, ge=1, description="Threads of PyTorch; null: its default.")


@reads(dict.fromkeys(LMOptions.model_fields, DATA))
class LMTrainee(Trainee):
    """See ``Trainee`` for what its methods promise. It is deterministic, on the CPU."""

    in_words = "A small transformer under supervision: it is shown right answers to its training questions."
    outcomes_in_words = "Every training question is judged just before the update on it, by the model's likeliest tokens; nothing is sampled."
    score_in_words = (
        "the part of the answer's tokens (its signs, unless the run says words) that the model holds likeliest, each judged after the "
        "right ones before it"
    )
    form: Form = "replies"
    units = ("samples",)
    reports = frozenset({"samples", "success_rate", "loss", "grad_norm"})

    def __init__(
        self,
        *,
        world: Any,
        capacity: Mapping[str, Any] | None = None,
        exclude: Sequence[Any] = (),
        seed: int = 0,
        **options: Any,
    ) -> None:
        self.options, self.world, self.exclude = LMOptions(**options), world, tuple(exclude)
        self.boards = boards_in(exclude)
        self.model, self.tokenizer = self._begin(seed % 2**32)
        self.optimiser = torch.optim.AdamW(self.model.parameters(), betas=(0.9, 0.98))
        self.updates = 0
        self.visited = Visited()
        self._blind: dict[str, dict[str, float]] = {}  # by config

    def _begin(self, seed: int) -> tuple[Any, Any]:
        """The run's first model and its tokenizer."""
        options = self.options
        if options.model is None:
            tokenizer = small_tokenizer() if options.tokens == "words" else sign_tokenizer()
            sizes = {"width": options.width, "layers": options.layers, "heads": options.heads}
            return small_model(tokenizer, seed, **sizes).eval(), tokenizer
        from transformers import AutoModelForCausalLM, AutoTokenizer

        raise_unless_data(options.model, "trainee.options.model")
        for cases in self.boards:
            raise_unless_unseen(Path(options.model), cases)
        with quiet():
            trust = WEIGHTS["trust_remote_code"]
            tokenizer = AutoTokenizer.from_pretrained(options.model, padding_side="left", trust_remote_code=trust)
            return AutoModelForCausalLM.from_pretrained(options.model, **WEIGHTS).float().eval(), tokenizer

    @classmethod
    def check_world(cls, world: Any) -> None:
        if not offers(world, "lessons") or getattr(world, "mode", "plan") != "plan":
            raise ValueError(
                f"it learns from certified answers, and {world.about.name} has none: name another trainee.kind"
            )

    @classmethod
    def check_options(cls, **options: Any) -> None:
        """Raises ``ValueError`` or ``ImportError`` for unknown or wrong options, without loading anything."""
        given = LMOptions(**options)
        if given.width % given.heads:
            raise ValueError(f"width={given.width} is not a multiple of heads={given.heads}: choose one that is")
        if given.model is not None:
            if not (Path(given.model) / "config.json").is_file():
                raise ValueError(f"there is no model in {given.model}: name a transformers folder, or leave it out")
            raise_unless_data(given.model, "trainee.options.model")
        require("torch", "transformers", extra="grpo")

    @classmethod
    def resources(cls, **options: Any) -> Sequence[Mapping[str, float]]:
        return ({"CPU": LMOptions(**options).torch_threads or 1},)

    def train(self, config: Any, budget: int, *, seed: int, on_iteration: OnIteration | None = None) -> Metrics:
        """Learn for ``budget`` samples. Raises ``TrainingDiverged``."""
        history: list[Metrics] = []
        for number, count in enumerate(iterations_of(budget, self.options.batch)):
            metrics, outcomes = self._iterate(config, count, derive(seed, "iteration", number))
            history.append(metrics)
            if on_iteration is not None:
                on_iteration({**metrics, OUTCOMES: outcomes})
        return summary(history)

    def _iterate(self, config: Any, count: int, seed: int) -> tuple[Metrics, Tally]:
        """Learn from the next questions of the stage, each judged before the update on it."""
        lessons = self.world.lessons(config, count, seed=derive(seed, "lessons"), exclude=self.exclude)
        outcomes, steps, repeats = Tally(), list[Updated](), list[bool]()
        with set_threads(self.options.torch_threads):
            taught = tokens_of(self.tokenizer, lessons)
            for at in range(0, count, self.options.batch):
                batch = slice(at, at + self.options.batch)
                steps.append(self._update(taught[batch]))
                repeats += self.visited.repeats([lesson.question for lesson in lessons[batch]])
        outcomes.observe_many(
            [lesson.slice for lesson in lessons],
            [right for one in steps for right in one.right],
            [part for one in steps for part in one.parts],
            repeats=repeats,
        )
        metrics = {
            "samples": float(count),
            "success_rate": sum(sum(one.right) for one in steps) / count,
            "loss": fmean(one.loss for one in steps),
            "grad_norm": fmean(one.norm for one in steps),
        }
        return metrics, outcomes

    def blind_scores(self, config: Any) -> dict[str, float]:
        """By the best sequence of tokens, chosen on half of some questions and judged on the others."""
        evenly = _with_even_shares(config)
        key = as_text(evenly)
        if key not in self._blind:
            lessons = self.world.lessons(evenly, BLIND * len(self.world.slices(config)), seed=0, exclude=self.exclude)
            answers = self.tokenizer([lesson.answer for lesson in lessons], add_special_tokens=False).input_ids
            by_slice: dict[str, list[list[int]]] = {}
            for lesson, answer in zip(lessons, answers, strict=True):
                by_slice.setdefault(lesson.slice, []).append(answer)
            self._blind[key] = {name: _blind_part(found[::2], found[1::2]) for name, found in by_slice.items()}
        return self._blind[key]

    def _update(self, batch: Sequence[Any]) -> Updated:
        ids, labels = padded(batch, self.tokenizer.pad_token_id)
        self.updates += 1
        rate = self.options.learning_rate * min(1.0, self.updates / max(1, self.options.warmup))
        self.model.train()
        updated = step(self.model, self.optimiser, ids, labels, rate)
        self.model.eval()
        if not (isfinite(updated.loss) and isfinite(updated.norm)):
            raise TrainingDiverged(
                f"loss {updated.loss} and gradient norm {updated.norm}: continue from the last checkpoint with a lower learning_rate "
                f"({self.options.learning_rate})"
            )
        return updated

    def policy(self) -> ReplyPolicy:
        """The current model; it answers greedily."""
        options = self.options
        model = deepcopy(self.model)
        return ReplyPolicy(model, self.tokenizer, max_tokens=options.max_tokens, threads=options.torch_threads)

    def save(self, folder: Path) -> None:
        """An ordinary transformers folder, with the files that only training needs beside it."""
        with quiet():
            save_weights(folder, self.model, self.tokenizer, self.optimiser)
        (folder / COUNTED).write_text(json.dumps(self.updates) + "\n", encoding="utf-8")
        self.visited.save(folder)
        pass_on_unseen(Path(self.options.model or folder), folder, self.boards)

    def load(self, folder: Path) -> None:
        updates = untrusted.parsed((folder / COUNTED).read_bytes())
        if not isinstance(updates, int) or isinstance(updates, bool) or updates < 0:
            raise ValueError(f"{COUNTED} holds {updates!r:.60}, not a number of updates")
        load_weights(folder, self.model)
        load_optimiser(folder, self.optimiser)
        self.updates = updates
        self.visited.load(folder)

    def slim(self, folder: Path) -> None:
        remove_training_state(folder)

    def close(self) -> None:
        """Nothing to release."""


def iterations_of(budget: int, batch: int) -> list[int]:
    """The questions of each iteration of a stage. A report's halves are halves of a stage's iterations, so their number is even (unless there
    is one update), and all have as many updates, give or take one."""
    updates = -(-budget // batch)
    parts = min(updates, 2 * -(-updates // (2 * UPDATES)))
    ends = [min(budget, batch * (updates * part // max(1, parts))) for part in range(parts + 1)]
    return [end - begin for begin, end in pairwise(ends)]


def _with_even_shares(config: Any) -> Any:
    """The config with the same share for every slice in use."""
    used = [one.share for one in slices_in(config) if one.share is not None and one.share.value]
    return with_values(config, {share.path: share_of(share, 1 / len(used)) for share in used})


def _blind_part(chosen_by: Sequence[Sequence[int]], judged_on: Sequence[Sequence[int]]) -> float:
    """The mean part of the second answers that the likeliest tokens of the first ones are, place by place."""
    guess = likeliest(chosen_by)
    hits = [sum(one == other for one, other in zip(guess, answer, strict=False)) for answer in judged_on]
    return fmean(hit / max(1, len(answer)) for hit, answer in zip(hits, judged_on, strict=True)) if judged_on else 0.0
