"""Checkpoints inside a long stage, at its validations: for trainees whose stages take hours.

A trainee asks for them with ``checkpoints_inside = True``. A killed stage continues from the last one and ends as if it had not
been killed: the checkpoint holds the trainee and the attempt's state, and later stretches are seeded by their number.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from envtuning import atomic
from envtuning.runs.checked import Files

PREFIX = "inside-"


def folders(stage: Path) -> list[Path]:
    """The complete checkpoints, oldest first."""
    numbered = (folder for folder in stage.glob(f"{PREFIX}*") if folder.name.removeprefix(PREFIX).isdecimal())
    found = [folder for folder in numbered if folder.is_dir()]
    return sorted(found, key=lambda folder: int(folder.name.removeprefix(PREFIX)))


def keep(files: Files, stage: Path, stretch: int, state: str, save: Callable[[Path], None]) -> None:
    """Write a checkpoint after this stretch of training, then remove those before it."""
    before = folders(stage)
    with files.new_folder(stage / f"{PREFIX}{stretch}") as draft:
        (draft / "trainee").mkdir()
        save(draft / "trainee")
        (draft / "state.json").write_text(state, encoding="utf-8")
    remove(before)


def latest(files: Files, stage: Path) -> Path | None:
    """The last checkpoint: a folder with ``state.json`` and ``trainee``; None if there is none. Raises ``RunError`` if it is damaged."""
    found = folders(stage)
    if not found:
        return None
    files.raise_unless_as_written(found[-1])
    return found[-1]


def remove(these: list[Path]) -> None:
    """Remove these folders; each loses its name at once."""
    for folder in these:
        atomic.clear(folder.parent, keep=tuple(entry.name for entry in folder.parent.iterdir() if entry != folder))
