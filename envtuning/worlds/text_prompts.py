"""``TextPrompts``: a ``TextWorld``'s questions for TRL's ``GRPOTrainer``, in your own script. ::

prompts = TextPrompts(world, config)
trainer = GRPOTrainer(model, train_dataset=prompts.dataset, reward_funcs=prompts.rewards)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Any

from engineers.shared.extras import needs
from envtuning.seeds import derive
from envtuning.worlds.text_world import Asked, TextWorld, answer_in, ask, judged
from envtuning.worlds.world import Cases

BLOCK = 64  # rows; in each block the tasks have their shares, rounded to whole rows
KEPT = 1_024  # recently used blocks, and recently used questions


class TextPrompts:
    """``n`` rows that are drawn on access. Row k is a function of the current config, the seed and k.

    ``set_config`` takes effect at the next batch that the trainer fetches; ``TRLCurriculumCallback`` calls it. No row is a case of
    ``exclude``.
    """

    def __init__(
        self, world: TextWorld, config: Any, n: int = 100_000, seed: int = 0, *, exclude: Sequence[Cases] = ()
    ) -> None:
        try:
            from datasets import Dataset
        except ImportError as error:
            raise needs("TextPrompts", error, "grpo") from error
        self.world, self.seed, self.exclude = world, seed, tuple(exclude)
        self.blocks = lru_cache(KEPT)(self._block)
        self.questions = lru_cache(KEPT)(self._question)
        self.config: Any = None  # in force
        self.version = 0  # 1 for the first config, one more after each change
        self.set_config(config)
        self.dataset = Dataset.from_dict({"row": list(range(n))})
        self.dataset.set_transform(self._rows)

    def __reduce__(self) -> Any:
        """The fingerprint for ``datasets``; a copy in another process could not follow ``set_config``."""
        return str, (f"{self.world.about.name} {self.seed} {self.config.model_dump_json()}",)

    def set_config(self, config: Any) -> None:
        """Use this config from now on. Raises ``InfeasibleConfig``."""
        self.raise_unless_fits(config)
        self.version += config != self.config
        self.config = deepcopy(config)  # the caller may change its own later
        self.blocks.cache_clear()

    def raise_unless_fits(self, config: Any) -> None:
        """Raises ``InfeasibleConfig`` for a config of which no questions can be made."""
        self.world.check(config)

    def get_config(self) -> Any:
        """A copy of the config in force."""
        return deepcopy(self.config)

    def rewards(
        self, completions: Sequence[Any], metadata: Sequence[Mapping[str, Any]], log_metric: Any = None, **columns: Any
    ) -> list[float]:
        """The score of each reply's answer, 0 to 1. ``success_rate`` is logged if the trainer accepts metrics."""
        paid = [self._judged(reply, row) for reply, row in zip(completions, metadata, strict=True)]
        if log_metric is not None and paid:
            log_metric("success_rate", sum(failure is None for _, failure in paid) / len(paid))
        return [score for score, _ in paid]

    def _judged(self, reply: Any, row: Mapping[str, Any]) -> tuple[float, str | None]:
        said = reply if isinstance(reply, str) else str(reply[-1].get("content") or "") if reply else ""
        asked = self.questions(row["slice"], row["knobs"], row["number"])
        return judged(self.world.tasks[row["slice"]], answer_in(said), asked)

    def _question(self, name: str, knobs: str, number: int) -> Asked:
        task = self.world.tasks[name]
        return ask(task, task.knobs.model_validate_json(knobs), number)

    def _rows(self, batch: Mapping[str, Sequence[int]]) -> dict[str, list[Any]]:
        rows = [self.blocks(row // BLOCK)[row % BLOCK] for row in batch["row"]]
        return {name: [row[name] for row in rows] for name in ("prompt", "metadata")}

    def _block(self, number: int) -> list[dict[str, Any]]:
        drawn = self.world.training(self.config, BLOCK, seed=derive(self.seed, "block", number), exclude=self.exclude)
        knobs = {name: one.model_dump_json() for name, one in self.config.tasks.items()}
        return [
            {
                "prompt": [{"role": "user", "content": asked.question}],
                "metadata": {
                    "slice": case.slice,
                    "number": case.seed,
                    "knobs": knobs[case.slice],
                    "version": self.version,
                },
            }
            for case, asked in drawn
        ]
