"""What an env that renders keeps: the episode's snapshots. The renderers themselves are loaded when first asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mapf_frozenlake.world.snapshot import Snapshot


class Recorder:
    """The snapshots of the episode that runs, and how to show them."""

    def __init__(self, mode: str, fps: int) -> None:
        self.mode, self.fps = mode, fps
        self.snapshots: list[Snapshot] = []
        self._window: Any = None

    def begin(self, snapshot: Snapshot) -> None:
        self.snapshots = []
        self.add(snapshot)

    def add(self, snapshot: Snapshot) -> None:
        trails = np.stack([*(one.positions for one in self.snapshots), snapshot.positions])
        self.snapshots.append(replace(snapshot, trails=trails))
        if self.mode == "human":
            self.frame()

    def frame(self) -> Any:
        """The newest snapshot as text, as an image, or on the screen."""
        from mapf_frozenlake import render

        if self.mode == "ansi":
            return render.ansi(self.snapshots[-1])
        if self.mode == "rgb_array":
            return render.rgb_array(self.snapshots[-1])
        if self._window is None:
            self._window = render.Window(fps=self.fps)
        return self._window.show(self.snapshots[-1])

    def save(self, path: str) -> None:
        from mapf_frozenlake import render

        render.save_animation(path, self.snapshots)

    def close(self) -> None:
        if self._window is not None:
            self._window.close()
            self._window = None
