"""Arrays that are given away without a copy, and used again once nobody holds them any more."""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

KEPT = 4  # arrays to choose from: the one in use, the caller's, and two more for callers that keep the last few
_UNHELD = 2  # references to an array that only the list below has: the list's and getrefcount's own
_IN_USE = 2  # references that a LakeBatch has to the array it writes to


class Lending:
    """Hands out arrays of one shape; contents are whatever they were.

    Who holds an array, or a view of it, keeps it as it is: it is not handed out again. So a caller that keeps every
    observation gets a new array each time, and one that drops them gets memory that is mapped and warm.
    """

    def __init__(self, like: NDArray) -> None:
        self._shape, self._dtype = like.shape, like.dtype
        self._arrays: list[NDArray] = []

    def array(self, in_use: int | None = None) -> NDArray:
        """One that nobody holds; the one whose ``id`` is ``in_use`` may be held by the batch that writes to it."""
        for which in range(len(self._arrays)):
            own = _UNHELD + (_IN_USE if id(self._arrays[which]) == in_use else 0)
            if sys.getrefcount(self._arrays[which]) == own:
                return self._arrays[which]
        made: NDArray = np.empty(self._shape, self._dtype)
        if len(self._arrays) == KEPT:
            self._arrays.pop(0)  # it belongs to its holder alone from now on
        self._arrays.append(made)
        return made

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_arrays": []}  # what was lent stays with its process
