"""``DatasetPrompts``: the rows of your own ``datasets.Dataset``, drawn by the shares of its slices, for TRL's ``GRPOTrainer``. ::

prompts = DatasetPrompts(rows)  # with a column `slice`
curriculum = EngineerCurriculum("rising", prompts.config, target=prompts.config, every=1_000, max_questions=20)
callback = TRLCurriculumCallback(prompts, curriculum)
trainer = GRPOTrainer(model, train_dataset=prompts.dataset, reward_funcs=callback.rewards(function), callbacks=[callback])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from engineers.shared.extras import needs
from envtuning.errors import SpecError

if TYPE_CHECKING:
    import datasets


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    share: float = Field(1.0, ge=0.0, le=1.0, description="Part of the data.")


class Parts(BaseModel):
    """The shares of the slices; only their ratios count."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    slices: dict[str, Part]


class DatasetPrompts:
    """``n`` rows that are drawn on access, with replacement: the slice by the shares in force, then one of its rows.

    Row k is a function of the shares, the seed and k. It has the columns of ``rows``, ``slice`` and ``config_version``, by which the callback
    tells replies to prompts of earlier shares. ``config`` begins with equal shares; ``TRLCurriculumCallback`` calls ``set_config``.
    """

    def __init__(self, rows: datasets.Dataset, n: int = 100_000, seed: int = 0, *, column: str = "slice") -> None:
        try:
            from datasets import Dataset
        except ImportError as error:
            raise needs("DatasetPrompts", error, "grpo") from error
        if column not in rows.column_names:
            raise SpecError(f"the dataset has no column {column!r}, but {', '.join(rows.column_names)}: pass column=")
        self.rows, self.seed, self.column = rows, seed, column
        names = np.array([str(name) for name in rows[column]])
        self.places = {str(name): np.flatnonzero(names == name) for name in np.unique(names)}
        self.config = Parts(slices={name: Part() for name in self.places})
        self.version = 1  # one more after each change
        self.dataset = Dataset.from_dict({"row": list(range(n))})
        self.dataset.set_transform(self._rows)

    def __reduce__(self) -> Any:
        """The fingerprint for ``datasets``; a copy in another process could not follow ``set_config``."""
        return str, (f"{self.rows!r} {self.seed} {self.config.model_dump_json()}",)

    def set_config(self, config: Parts) -> None:
        """Draw by these shares from the next batch on that the trainer fetches."""
        if config.slices.keys() != self.places.keys() or not any(part.share for part in config.slices.values()):
            raise SpecError(
                f"the shares {config.slices!r:.200}: give one to each of {', '.join(self.places)}, not all 0"
            )
        self.version += config != self.config
        self.config = config

    def _rows(self, batch: Mapping[str, Sequence[int]]) -> dict[str, list[Any]]:
        shares = np.array([self.config.slices[name].share for name in self.places])
        found = self.rows[[self._place(row, shares / shares.sum()) for row in batch["row"]]]
        return {
            **found,
            "slice": [str(name) for name in found[self.column]],
            "config_version": [self.version] * len(batch["row"]),
        }

    def _place(self, row: int, shares: np.ndarray) -> int:
        rng = np.random.default_rng((self.seed, row))
        return int(rng.choice([*self.places.values()][rng.choice(len(self.places), p=shares)]))
