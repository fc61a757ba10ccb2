"""``Visited``: the questions that a policy has been trained on. An episode on one of them is a repeat, which shows memory."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FILE = "visited.npy"  # in a checkpoint


class Visited:
    """Keeps a hash of 8 bytes of every question."""

    def __init__(self) -> None:
        self.known: set[int] = set()
        self.added: set[int] = set()  # by ``repeats`` since ``take``, for other processes

    def repeats(self, questions: Sequence[str]) -> list[bool]:
        """Which of these questions were trained on before; all of them are trained on now, so none repeats another."""
        keys = [int.from_bytes(blake2b(one.encode(), digest_size=8).digest(), "little") for one in questions]
        found = [key in self.known for key in keys]
        self.added |= set(keys) - self.known
        self.known.update(keys)
        return found

    def repeats_in_turn(self, keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """The same for questions that end one after another, given by hashes of 8 bytes: one may repeat one of them, too.

        For one process: ``take`` does not have these.
        """
        known, found = self.known, np.zeros(len(keys), bool)
        for place, key in enumerate(keys.tolist()):
            if key in known:
                found[place] = True
            else:
                known.add(key)
        return found

    def take(self) -> set[int]:
        """The questions that ``repeats`` added since the last call."""
        taken, self.added = self.added, set()
        return taken

    def save(self, folder: Path) -> None:
        np.save(folder / FILE, np.array(sorted(self.known), dtype=np.uint64))

    def load(self, folder: Path) -> None:
        """Raises ``ValueError`` for a damaged file. Checkpoints of older versions have none."""
        path = folder / FILE
        found = np.load(path, allow_pickle=False) if path.is_file() else np.empty(0, np.uint64)
        if found.ndim != 1 or found.dtype != np.uint64:
            raise ValueError(f"{FILE} must hold whole numbers of 64 bits, it has {found.dtype}{list(found.shape)}")
        self.known, self.added = set(found.tolist()), set()
