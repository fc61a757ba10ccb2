"""Checkpoints inside a long stage, at its validations: for trainees whose stages take hours.

A trainee asks for them with ``checkpoints_inside = True``. A killed stage continues from the last one and ends as if it had not
been killed: the checkpoint holds the trainee and ``StageSoFar``, and later stretches are seeded by their number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engineers.report import Incident
from envtuning import atomic
from envtuning.errors import RunError
from envtuning.runs.checked import Files

PREFIX = "inside-"


class StageSoFar(BaseModel):
    """state.json: the state of all attempts at a stage. The current attempt adds to it."""

    model_config = ConfigDict(extra="forbid")

    attempt: int = 0
    config: dict[str, Any]  # that this attempt trains on
    incidents: list[Incident] = []
    spent: Counter[str] = Field(default_factory=Counter)  # by unit, including attempts that diverged
    trained: Counter[str] = Field(default_factory=Counter)  # by this attempt; so are all fields below
    validated: Counter[str] = Field(default_factory=Counter)
    history_spent: int = 0  # of both, in the budget's unit
    stretch: int = 0  # number of finished stretches of training
    iterations: list[dict[str, float]] = []
    validations: list[dict[str, float]] = []
    said: list[str] = []  # warnings that are recorded once
    lines: list[dict[str, Any]] = []  # of metrics.jsonl

    def again(self, config: dict[str, Any], *, charged: bool) -> StageSoFar:
        """The state at the start of the next attempt, on this config. If this attempt is not charged, it leaves no trace."""
        spent = self.spent if charged else self.spent - self.trained - self.validated
        return StageSoFar(attempt=self.attempt + 1, config=config, incidents=self.incidents, spent=spent)


def folders(stage: Path) -> list[Path]:
    """The complete checkpoints, oldest first."""
    numbered = (folder for folder in stage.glob(f"{PREFIX}*") if folder.name.removeprefix(PREFIX).isdecimal())
    found = [folder for folder in numbered if folder.is_dir()]
    return sorted(found, key=lambda folder: int(folder.name.removeprefix(PREFIX)))


def keep(files: Files, stage: Path, so_far: StageSoFar, save: Callable[[Path], None]) -> None:
    """Write a checkpoint, then remove those before it."""
    before = folders(stage)
    with files.new_folder(stage / f"{PREFIX}{so_far.stretch}") as draft:
        (draft / "trainee").mkdir()
        save(draft / "trainee")
        (draft / "state.json").write_text(so_far.model_dump_json(), encoding="utf-8")
    remove(before)


@dataclass(frozen=True)
class Interrupted:
    """A stage that a killed process left unfinished."""

    so_far: StageSoFar
    trainee: Path  # the folder to load it from


def latest(files: Files, stage: Path) -> Interrupted | None:
    """The last checkpoint, with metrics.jsonl rewritten as it was then; None if there is none."""
    found = folders(stage)
    if not found:
        return None
    files.raise_unless_as_written(found[-1])
    try:
        so_far = StageSoFar.model_validate_json((found[-1] / "state.json").read_bytes())
    except (OSError, ValidationError) as error:
        raise RunError(
            f"{found[-1]} has changed since it was written: restore it from a copy, or remove the folders {PREFIX}* "
            "beside it to restart the stage"
        ) from error
    atomic.write_lines(stage / "metrics.jsonl", so_far.lines)
    return Interrupted(so_far, found[-1] / "trainee")


def remove(these: list[Path]) -> None:
    """Remove these folders; each loses its name at once."""
    for folder in these:
        atomic.clear(folder.parent, keep=tuple(entry.name for entry in folder.parent.iterdir() if entry != folder))
