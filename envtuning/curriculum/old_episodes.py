"""``OldEpisodes``: which copies of an environment still finish an episode of the config before the last swap."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class OldEpisodes:
    """Tracks environments that are still finishing an episode from the previous config.

    ``reset_later``: a copy begins its next episode after the step that ends one, so a config set in between applies.
    """

    def __init__(self, copies: int, *, reset_later: bool) -> None:
        self.copies = copies
        self._reset_later = reset_later
        self._behind = np.zeros(copies, np.bool_)
        self._between = np.ones(copies, np.bool_)  # whose next episode has not begun

    def begun(self, mask: NDArray[np.bool_] | None = None) -> None:
        """All copies, or those in ``mask``, were reset."""
        which = slice(None) if mask is None else np.asarray(mask, np.bool_)
        self._behind[which] = self._between[which] = False

    def swapped(self) -> None:
        self._behind = ~self._between

    def ended(self, over: NDArray[np.bool_]) -> NDArray[np.intp]:
        """The copies whose episodes ended in this step, without those that began before the last swap."""
        self._between = over & self._reset_later
        rows = np.flatnonzero(over)
        behind = self._behind[rows]
        if not behind.any():
            return rows
        self._behind[rows] = False
        return rows[~behind]
