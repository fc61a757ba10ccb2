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
        self._nobody = np.zeros(copies, np.bool_)
        self._behind = self._nobody
        self._none_behind = True  # which is nearly always so, and is quicker to ask
        self._between = np.ones(copies, np.bool_)  # whose next episode has not begun

    def begun(self, mask: NDArray[np.bool_] | None = None) -> None:
        """All copies, or those in ``mask``, were reset."""
        others = self._nobody if mask is None else ~np.asarray(mask, np.bool_)
        self._between = self._between & others
        self._follow(self._behind & others)

    def swapped(self) -> None:
        self._follow(~self._between)

    def ended(self, over: NDArray[np.bool_]) -> NDArray[np.intp]:
        """The copies whose episodes ended in this step, without those that began before the last swap.

        If copies are reset later, ``over`` is kept until the next step: give an array that nobody writes to.
        """
        self._between = over if self._reset_later else self._nobody
        rows = over.nonzero()[0]
        if self._none_behind:
            return rows
        behind = self._behind[rows]
        self._follow(self._behind & ~over)
        return rows[~behind]

    def _follow(self, behind: NDArray[np.bool_]) -> None:
        self._behind, self._none_behind = behind, not behind.any()
