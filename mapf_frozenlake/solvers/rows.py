"""Growing tables of joint states: rows of cells with a hash index."""

from __future__ import annotations

import numpy as np

from mapf_frozenlake.solvers.bits import kernel


@kernel
def find_row(table, rows, row):
    """The slot of ``row``, or its free slot, in a hash table of row numbers (-1: free) whose length is a power of two."""
    mixed = np.uint64(0xCBF29CE484222325)
    for value in row:
        mixed = (mixed ^ np.uint64(value)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    slot = np.int64(mixed & np.uint64(len(table) - 1))
    while table[slot] >= 0:
        known = rows[table[slot]]
        same = True
        for column in range(len(row)):
            if known[column] != row[column]:
                same = False
                break
        if same:
            break
        slot = (slot + 1) & (len(table) - 1)
    return slot


@kernel
def larger_table(table, rows, count):
    """A hash table of the first ``count`` rows with twice the length."""
    larger = np.empty(2 * len(table), np.int64)
    larger[:] = -1
    for number in range(count):
        larger[find_row(larger, rows, rows[number])] = number
    return larger


@kernel
def taller(rows, fill):
    """Twice as many rows, the new ones full of ``fill``."""
    more = np.empty((2 * rows.shape[0], rows.shape[1]), rows.dtype)
    for i in range(more.shape[0]):
        for j in range(more.shape[1]):
            more[i, j] = rows[i, j] if i < rows.shape[0] else fill
    return more
