"""``LMTrainee``: a small transformer under supervision, on the certified answers of a stage's own cases; it learns in seconds.

``options`` are ``LMOptions``. The model has random weights or is read from a folder. It is saved in transformers' format, so that
the trainee ``grpo`` can continue from its checkpoints. A unit of budget is a question that it answers, or whose answer it is shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from engineers.backends.weights import WEIGHTS, raise_unless_data
from engineers.from_file import DATA, reads
from engineers.shared import untrusted
from envtuning.seeds import derive
from envtuning.trainees.base import Metrics, OnIteration, Trainee, TrainingDiverged
from envtuning.trainees.language.policy import ReplyPolicy
from envtuning.trainees.language.pretrain import boards_in, pass_on_unseen, raise_unless_unseen
from envtuning.trainees.language.supervised import padded, step, tokens_of
from envtuning.trainees.language.trainee import summary
from envtuning.trainees.process_state import set_threads
from envtuning.worlds.world import Form, offers

UPDATES = 50  # in an iteration; their questions are drawn and encoded together
TRIED = 16  # questions that it answers before each iteration
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
        import torch

        self.options, self.world, self.exclude = LMOptions(**options), world, tuple(exclude)
        self.boards = boards_in(exclude)
        self.model, self.tokenizer = self._begin(seed % 2**32)
        self.optimiser = torch.optim.AdamW(self.model.parameters(), betas=(0.9, 0.98))
        self.updates = 0

    def _begin(self, seed: int) -> tuple[Any, Any]:
        """The run's first model and its tokenizer."""
        from envtuning.trainees.language.quiet import quiet
        from envtuning.trainees.language.small import small_model
        from envtuning.trainees.language.tokenizer import sign_tokenizer, small_tokenizer

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
        from engineers.shared.extras import require

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
        """Learn for ``budget`` samples, including the questions that it answers. Raises ``TrainingDiverged``."""
        history: list[Metrics] = []
        left = budget
        while left > 0:
            history.append(self._iterate(config, left, derive(seed, "iteration", len(history))))
            left -= int(history[-1]["samples"])
            if on_iteration is not None:
                on_iteration(dict(history[-1]))
        return summary(history)

    def _iterate(self, config: Any, most: int, seed: int) -> Metrics:
        """Answer a few questions of the stage, then learn from others."""
        per_slice = max(1, TRIED // len(self.world.slices(config)))
        cases = self.world.draw(config, per_slice, seed=derive(seed, "try"), purpose="probe", exclude=self.exclude)
        count = max(1, min(most - len(cases), UPDATES * self.options.batch))
        lessons = self.world.lessons(config, count, seed=derive(seed, "lessons"), exclude=self.exclude)
        with set_threads(self.options.torch_threads):
            played = self.world.play(self._policy(self.model), cases, config, seed=seed)
            taught = tokens_of(self.tokenizer, lessons)
            batches = [taught[at : at + self.options.batch] for at in range(0, count, self.options.batch)]
            steps = [self._update(batch) for batch in batches]
        return {
            "samples": float(count + len(cases)),
            "success_rate": fmean(episode.succeeded for episode in played),
            "loss": fmean(loss for loss, _ in steps),
            "grad_norm": fmean(norm for _, norm in steps),
        }

    def _update(self, batch: Sequence[Any]) -> tuple[float, float]:
        ids, labels = padded(batch, self.tokenizer.pad_token_id)
        self.updates += 1
        rate = self.options.learning_rate * min(1.0, self.updates / max(1, self.options.warmup))
        self.model.train()
        loss, norm = step(self.model, self.optimiser, ids, labels, rate)
        self.model.eval()
        if not (isfinite(loss) and isfinite(norm)):
            raise TrainingDiverged(
                f"loss {loss} and gradient norm {norm}: continue from the last checkpoint with a lower learning_rate "
                f"({self.options.learning_rate})"
            )
        return loss, norm

    def _policy(self, model: Any) -> ReplyPolicy:
        return ReplyPolicy(
            model, self.tokenizer, max_tokens=self.options.max_tokens, threads=self.options.torch_threads
        )

    def policy(self) -> ReplyPolicy:
        """The current model; it answers greedily."""
        return self._policy(deepcopy(self.model))

    def save(self, folder: Path) -> None:
        """An ordinary transformers folder, with the files that only training needs beside it."""
        from envtuning.trainees.language.quiet import quiet
        from envtuning.trainees.language.state import save_weights

        with quiet():
            save_weights(folder, self.model, self.tokenizer, self.optimiser)
        (folder / COUNTED).write_text(json.dumps(self.updates) + "\n", encoding="utf-8")
        pass_on_unseen(Path(self.options.model or folder), folder, self.boards)

    def load(self, folder: Path) -> None:
        from envtuning.trainees.language.state import load_optimiser, load_weights

        updates = untrusted.parsed((folder / COUNTED).read_bytes())
        if not isinstance(updates, int) or isinstance(updates, bool) or updates < 0:
            raise ValueError(f"{COUNTED} holds {updates!r:.60}, not a number of updates")
        load_weights(folder, self.model)
        load_optimiser(folder, self.optimiser)
        self.updates = updates

    def slim(self, folder: Path) -> None:
        """Only the last stage keeps the optimiser's state."""
        from envtuning.trainees.language.state import OPTIMISER

        (folder / OPTIMISER).unlink(missing_ok=True)

    def close(self) -> None:
        """Nothing to release."""
