"""How far it is over ice, cell by cell."""

from __future__ import annotations

from collections import deque

import numpy as np


def distances(holes: np.ndarray, goal: tuple[int, int]) -> np.ndarray:
    """Steps to ``goal`` over ice from every cell, -1 where there is no way: int32[height, width]."""
    field = np.full(holes.shape, -1, dtype=np.int32)
    field[goal] = 0
    queue = deque([goal])
    while queue:
        row, col = queue.popleft()
        for r, c in ((row, col - 1), (row + 1, col), (row, col + 1), (row - 1, col)):
            inside = 0 <= r < holes.shape[0] and 0 <= c < holes.shape[1]
            if inside and not holes[r, c] and field[r, c] < 0:
                field[r, c] = field[row, col] + 1
                queue.append((r, c))
    return field
