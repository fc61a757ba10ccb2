"""Checkpoints inside a long stage, at its validations: for trainees whose stages take hours.

A trainee asks for them with ``checkpoints_inside = True``. A killed stage continues from the last one, and its result is the same as
without the kill: the checkpoint has the trainee and ``StageSoFar``, and later stretches are seeded by their number.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engineers.report import Incident
from envtuning.errors import RunError
from envtuning.runs import atomic
from envtuning.runs.checked import Files
from envtuning.runs.state import Measured, Said

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
    lines: int = 0  # of metrics.jsonl, when this was written
    metrics_digest: str = ""  # of these lines

    def again(self, config: dict[str, Any], *, charged: bool) -> StageSoFar:
        """The state at the start of the next attempt, on this config. If this attempt is not charged, it leaves no trace."""
        spent = self.spent if charged else self.spent - self.trained - self.validated
        return StageSoFar(attempt=self.attempt + 1, config=config, incidents=self.incidents, spent=spent)


def folders(stage: Path) -> list[Path]:
    """The complete checkpoints, oldest first."""
    numbered = (folder for folder in stage.glob(f"{PREFIX}*") if folder.name.removeprefix(PREFIX).isdecimal())
    found = [folder for folder in numbered if folder.is_dir()]
    return sorted(found, key=lambda folder: int(folder.name.removeprefix(PREFIX)))


def keep(files: Files, stage: Path, so_far: StageSoFar, lines: list[Any], save: Callable[[Path], None]) -> None:
    """Write a checkpoint, then remove those before it; ``lines`` are those of metrics.jsonl."""
    before = folders(stage)
    state = so_far.model_copy(update={"lines": len(lines), "metrics_digest": digest_of(lines)})
    with files.new_folder(stage / f"{PREFIX}{state.stretch}") as draft:
        (draft / "trainee").mkdir()
        save(draft / "trainee")
        (draft / "state.json").write_text(state.model_dump_json(), encoding="utf-8")
    remove(before)


@dataclass(frozen=True)
class Interrupted:
    """A stage that a killed process left unfinished."""

    so_far: StageSoFar
    trainee: Path  # the folder to load it from
    lines: list[Any]  # of metrics.jsonl


def latest(files: Files, stage: Path) -> Interrupted | None:
    """The last checkpoint, with the metrics up to it; None if there is none."""
    found = folders(stage)
    if not found:
        return None
    files.raise_unless_as_written(found[-1])
    try:
        so_far = StageSoFar.model_validate_json((found[-1] / "state.json").read_bytes())
    except (OSError, ValidationError) as error:
        raise _damaged(found[-1]) from error
    metrics = stage / "metrics.jsonl"
    kept = files.lines(metrics, Measured | Said, whole=False)[: so_far.lines]
    if len(kept) < so_far.lines or so_far.metrics_digest != digest_of(kept):
        raise _damaged(metrics)
    atomic.write_lines(metrics, kept)
    return Interrupted(so_far, found[-1] / "trainee", kept)


def _damaged(path: Path) -> RunError:
    return RunError(
        f"{path} is not what was written there: restore it from a copy, or remove the folders {PREFIX}* beside it, and the "
        "stage starts again"
    )


def digest_of(lines: list[Any]) -> str:
    return hashlib.sha256(json.dumps(lines).encode()).hexdigest()


def remove(these: list[Path]) -> None:
    """Remove these folders; each loses its name at once."""
    for folder in these:
        atomic.clear(folder.parent, keep=tuple(entry.name for entry in folder.parent.iterdir() if entry != folder))
