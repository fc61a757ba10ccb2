"""The episode's snapshots, for an env that renders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.render import Window, ansi, rgb_array, save_animation
from mapf_frozenlake.world.snapshot import Snapshot

RENDER_MODES = ("ansi", "rgb_array", "human")
RENDER_FPS = 4


def make_recorder(render_mode: str | None, known: Sequence[str] = RENDER_MODES) -> Recorder | None:
    """A recorder for this mode, or None for None; ``LakeError`` for a mode that is not ``known``."""
    if render_mode is None:
        return None
    if render_mode not in known:
        raise LakeError(f"render_mode={render_mode!r}: give one of {', '.join(map(repr, known))} or None")
    return Recorder(render_mode)


class Recorder:
    """The snapshots of the running episode, and their display."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.snapshots: list[Snapshot] = []
        self._window: Window | None = None

    def begin(self, snapshot: Snapshot) -> None:
        self.snapshots = []
        self.add(snapshot)

    def add(self, snapshot: Snapshot) -> None:
        self.snapshots.append(snapshot)
        if self.mode == "human":
            self.frame()

    def frame(self) -> Any:
        """The newest snapshot as text, as an image, or on the screen."""
        if not self.snapshots:
            raise LakeError("render before reset: there is no episode to show; call reset first")
        newest = replace(self.snapshots[-1], trails=self._way())
        if self.mode == "ansi":
            return ansi(newest)
        if self.mode == "rgb_array":
            return rgb_array(newest)
        if self._window is None:
            self._window = Window(fps=RENDER_FPS)
        self._window.show(newest)
        return None

    def frames(self) -> list[Snapshot]:
        """The film so far, each frame with the trails up to it."""
        if not self.snapshots:
            return []
        way = self._way()
        return [replace(snapshot, trails=way[: step + 1]) for step, snapshot in enumerate(self.snapshots)]

    def _way(self) -> np.ndarray:
        return np.stack([snapshot.positions for snapshot in self.snapshots])

    def save(self, path: str | Path) -> Path:
        return save_animation(path, self.frames())

    def close(self) -> None:
        if self._window is not None:
            self._window.close()
            self._window = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_window": None}  # a window stays with its process
