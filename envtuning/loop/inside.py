"""Checkpoints inside a long stage, at its validations: for trainees whose stages take hours.

A trainee asks for them by ``checkpoints_inside = True``. A stage that was killed continues from the last one and ends with
what it would have ended with: it holds the trainee and all that the attempt knows, and the stretches after it are seeded by
their number.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from engineers.report import Incident
from envtuning.errors import RunError
from envtuning.runs import atomic
from envtuning.runs.checked import Files
from envtuning.runs.state import Measured, Said

PREFIX = "inside-"


class Inside(BaseModel):
    """state.json: an attempt at a stage between two stretches of training."""

    model_config = ConfigDict(extra="forbid")

    attempt: int
    config: dict[str, Any]
    stretch: int
    lines: int  # of metrics.jsonl
    metrics_digest: str  # of these lines
    spent: dict[str, int]
    trained: dict[str, int]
    validated: dict[str, int]
    history_spent: int
    iterations: list[dict[str, float]]
    validations: list[dict[str, float]]
    incidents: list[Incident]
    said: list[str]


def folders(stage: Path) -> list[Path]:
    """The whole ones, oldest first."""
    numbered = (folder for folder in stage.glob(f"{PREFIX}*") if folder.name.removeprefix(PREFIX).isdecimal())
    found = [folder for folder in numbered if folder.is_dir()]
    return sorted(found, key=lambda folder: int(folder.name.removeprefix(PREFIX)))


def keep(files: Files, stage: Path, state: Inside, save: Any) -> None:
    """Write a checkpoint, then remove those before it."""
    before = folders(stage)
    with files.new_folder(stage / f"{PREFIX}{state.stretch}") as draft:
        (draft / "trainee").mkdir()
        save(draft / "trainee")
        (draft / "state.json").write_text(state.model_dump_json(), encoding="utf-8")
    remove(before)


@dataclass(frozen=True)
class Interrupted:
    """What a killed process left of a stage."""

    state: Inside
    trainee: Path  # the folder to load it from
    lines: list[Any]  # of metrics.jsonl


def latest(files: Files, stage: Path) -> Interrupted | None:
    """The last checkpoint, the metrics cut back to it; None where there is none."""
    found = folders(stage)
    if not found:
        return None
    files.raise_unless_as_written(found[-1])
    try:
        state = Inside.model_validate_json((found[-1] / "state.json").read_bytes())
    except (OSError, ValidationError) as error:
        raise _damaged(found[-1]) from error
    metrics = stage / "metrics.jsonl"
    kept = files.lines(metrics, Measured | Said, whole=False)[: state.lines]
    if len(kept) < state.lines or state.metrics_digest != digest_of(kept):
        raise _damaged(metrics)
    atomic.write_lines(metrics, kept)
    return Interrupted(state, found[-1] / "trainee", kept)


def _damaged(path: Path) -> RunError:
    return RunError(
        f"{path} is not what was written there: restore it from a copy, or remove the folders {PREFIX}* beside it, and the "
        "stage starts again"
    )


def digest_of(lines: list[Any]) -> str:
    return hashlib.sha256(json.dumps(lines).encode()).hexdigest()


def remove(these: list[Path]) -> None:
    """Each vanishes under its name at once."""
    for folder in these:
        atomic.clear(folder.parent, keep=tuple(entry.name for entry in folder.parent.iterdir() if entry != folder))
