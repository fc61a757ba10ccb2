"""``GRPOTrainee``: trains a language model with GRPO.

``options`` are ``LanguageOptions``. One process trains the model here; several are a group of workers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engineers.backends.weights import raise_unless_data
from engineers.from_file import reads
from envtuning.trainees.base import OUTCOMES, Metrics, OnIteration, Trainee, TrainingDiverged
from envtuning.trainees.language.collapse import collapsed, unrewarded
from envtuning.trainees.language.options import FROM_FILE, LanguageOptions, named
from envtuning.trainees.language.pretrain import boards_in, pass_on_unseen, raise_unless_unseen
from envtuning.worlds.world import Form, raise_unless_trains

if TYPE_CHECKING:
    from envtuning.trainees.language.workers import WorkerGroup

NEEDED = ("torch", "transformers", "trl", "datasets", "peft")
UNITS = ("samples", "tokens")  # of this trainee's budgets
SUMS = (*UNITS, "generated_tokens", "trained_tokens")
LATELY = 10  # iterations over which a call's rates are averaged


@reads(FROM_FILE)
class GRPOTrainee(Trainee):
    """``Trainee`` documents the methods. With one process on CPU it is deterministic."""

    in_words = "A language model under GRPO, from the config's reward of sampled replies."
    form: Form = "replies"
    outcomes_in_words = "Replies are sampled, several to each question."
    units = UNITS
    late_rates = ("truncated_rate", "parse_error_rate", "equal_groups", "entropy", "kl")
    checkpoints_inside = True
    reports = frozenset(
        {
            "samples", "tokens", "success_rate", "parse_error_rate", "truncated_rate", "equal_groups", "reward", "entropy",
            "kl", "clip_ratio", "reply_tokens", "generated_tokens", "trained_tokens", "grad_norm", "loss",
        }
    )  # fmt: skip

    def __init__(
        self,
        *,
        world: Any,
        capacity: Mapping[str, Any] | None = None,
        exclude: Sequence[Any] = (),
        seed: int = 0,
        unit: str = "samples",
        within_group: bool = False,
        **options: Any,
    ) -> None:
        self.options = LanguageOptions(**options)
        self.excluded = boards_in(exclude)
        for cases in self.excluded:
            raise_unless_unseen(Path(self.options.model), cases)
        self.group: WorkerGroup | None = None
        if self.options.processes > 1 and not within_group:
            from envtuning.trainees.language.workers import WorkerGroup

            self.group = WorkerGroup(
                GRPOTrainee,
                self.options,
                world=world,
                capacity=dict(capacity or {}),
                exclude=tuple(exclude),
                seed=seed,
                unit=unit,
            )
            return
        from envtuning.trainees.language.learner import Learner
        from envtuning.trainees.language.tasks import LakePlans, tasks_of

        self.tasks = tasks_of(world, capacity or {}, exclude)
        played_here = None if isinstance(self.tasks, LakePlans) else self.tasks
        self.learner = Learner(self.options, seed % 2**32, played_here, unit)

    @classmethod
    def check_world(cls, world: Any) -> None:
        raise_unless_trains(world)

    @staticmethod
    def check_options(**options: Any) -> None:
        """Raises ``ValueError`` or ``ImportError`` for unknown or wrong options; loads only the reward's module."""
        from engineers.shared.extras import require

        given = LanguageOptions(**options)
        if given.model.startswith((".", "/")) and not (Path(given.model) / "config.json").is_file():
            raise ValueError(
                f"there is no model in {options['model']}: name a transformers folder. `envtuning weights smollm2 --out FOLDER` fetches a "
                f"pretrained one, and for lakes and tools `envtuning pretrain {options['model']} --for RUN` makes a small one"
            )
        raise_unless_data(given.model, "trainee.options.model")
        named(given.reward)
        require(*NEEDED, extra="grpo")

    @classmethod
    def resources(cls, **options: Any) -> Sequence[Mapping[str, float]]:
        """Several processes are all children of the run's own, on one node."""
        given = LanguageOptions(**options)
        gpus = 0 if given.of_grpo("use_cpu") else given.processes
        return ({"CPU": given.processes * (given.torch_threads or 1), "GPU": gpus},)

    @classmethod
    def check_asked_by(cls, engineer: str) -> None:
        from engineers.shared.extras import require

        require("torch", "transformers", extra="grpo")
        require("llguidance", "jinja2", extra="local")

    def collapse(self, iterations: Sequence[Metrics]) -> str | None:
        return collapsed(iterations)

    def unrewarded(self, iterations: Sequence[Metrics]) -> str | None:
        return unrewarded(iterations)

    def train(self, config: Any, budget: int, *, seed: int, on_iteration: OnIteration | None = None) -> Metrics:
        """Learn for about ``budget`` of the run's unit, in whole batches of prompts. Raises ``TrainingDiverged``."""
        if self.group is not None:
            return self.group.call("train", config, budget, seed=seed, told=on_iteration)
        history: list[Metrics] = []

        def watch(step: dict[str, Any]) -> None:
            history.append({name: value for name, value in step.items() if name != OUTCOMES})
            if on_iteration is not None:
                on_iteration(step)
            wrong = [name for name in ("loss", "grad_norm") if not isfinite(step.get(name, 0.0))]
            if wrong:
                raise TrainingDiverged(
                    f"{', '.join(wrong)} not finite: continue from the last checkpoint with a lower "
                    f"learning_rate ({self.options.of_grpo('learning_rate')}) or a higher beta ({self.options.of_grpo('beta')})"
                )

        rows = self.tasks.rows(config, self.learner.prompts_for(budget), seed)
        self.learner.train(rows, seed % 2**32, watch, budget=budget)
        return summary(history)

    def policy(self) -> Any:
        """The current policy, which answers many conversations at once: see ``ReplyPolicy``."""
        if self.group is not None:
            from envtuning.trainees.language.workers import RemotePolicy

            return RemotePolicy(self.group)
        return self.learner.policy()

    def language_model(self) -> tuple[Any, Any]:
        """The current model and its tokenizer, for the engineer ``checkpoint``, which does not change them."""
        return self.learner.model, self.learner.tokenizer

    def base_model(self) -> tuple[Any, Any]:
        """The model that the run began with, and its tokenizer, for the engineer ``base``."""
        return self.learner.base_model(), self.learner.tokenizer

    def save(self, folder: Path) -> None:
        if self.group is not None:
            self.group.call("save", folder)
            return
        self.learner.save(folder)
        pass_on_unseen(Path(self.options.model), folder, self.excluded)

    def load(self, folder: Path) -> None:
        if self.group is not None:
            self.group.call("load", folder)
            return
        self.learner.load(folder)

    def slim(self, folder: Path) -> None:
        from envtuning.trainees.language.state import remove_training_state

        remove_training_state(folder)

    def close(self) -> None:
        if self.group is not None:
            self.group.close()
            return
        self.learner.close()


def summary(history: Sequence[Metrics]) -> Metrics:
    """A call's metrics: sums of the counts, means of all others over its last iterations."""
    late = history[-LATELY:]
    names = dict.fromkeys(name for step in history for name in step)
    found: Metrics = {}
    for name in names:
        if name in SUMS:
            found[name] = sum(step.get(name, 0.0) for step in history)
        else:
            values = [step[name] for step in late if name in step] or [step[name] for step in history if name in step]
            found[name] = sum(values) / len(values)
    return found
