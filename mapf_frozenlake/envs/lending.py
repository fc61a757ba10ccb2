"""Arrays that are returned without a copy, and reused after the caller drops them."""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

KEPT = 4  # arrays in the pool: the one in use, the caller's, and two more for callers that keep the last few
_UNHELD = 2  # references to a free array: the list's and getrefcount's own
_IN_USE = 2  # references that a LakeBatch has to the array it writes to


class Lending:
    """Lends arrays of one shape, with arbitrary contents.

    An array is not lent again while a caller holds it or a view of it. So a caller that keeps every observation gets a new
    array each time, and a caller that drops them gets memory that is mapped and warm.
    """

    def __init__(self, like: NDArray) -> None:
        self._shape, self._dtype = like.shape, like.dtype
        self._arrays: list[NDArray] = []

    def array(self, in_use: int | None = None) -> NDArray:
        """An array that no caller holds. The batch that writes to it may hold the one whose ``id`` is ``in_use``."""
        for which in range(len(self._arrays)):
            own = _UNHELD + (_IN_USE if id(self._arrays[which]) == in_use else 0)
            if sys.getrefcount(self._arrays[which]) == own:
                return self._arrays[which]
        made: NDArray = np.empty(self._shape, self._dtype)
        if len(self._arrays) == KEPT:
            self._arrays.pop(0)  # from now on it belongs to its holder alone
        self._arrays.append(made)
        return made

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_arrays": []}  # lent arrays stay with their process
