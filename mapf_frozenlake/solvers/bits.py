"""Sets of cells as bits: cell c is bit c % 64 of word c // 64."""

from __future__ import annotations

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from mapf_frozenlake.numba_private import NO_COUNTS, SUBKERNEL

kernel = njit(**SUBKERNEL)
# A step of a long search. It allocates nothing, so it needs no reference counts for its arguments.
search_step = njit(**SUBKERNEL, forceinline=True, **NO_COUNTS)
entry = njit(cache=True, nogil=True, no_cfunc_wrapper=True)  # called from Python
# A function that is called in one place is compiled with its caller; otherwise each layer would optimise all below it again.
inlined = njit(inline="always", no_cpython_wrapper=True, no_cfunc_wrapper=True)

ONE = np.uint64(1)
LOW6 = np.uint64(63)


@intrinsic
def lowest_bit(typing_context, word):
    """Index of the lowest set bit of a word that is not 0."""

    def emit(context, builder, signature, args):
        return builder.cttz(args[0], context.get_constant(types.boolean, True))

    return types.uint64(types.uint64), emit


@kernel
def has(row, cell):
    return (row[cell >> 6] >> (np.uint64(cell) & LOW6)) & ONE != 0


@kernel
def add(row, cell):
    row[cell >> 6] |= ONE << (np.uint64(cell) & LOW6)


@kernel
def remove(row, cell):
    row[cell >> 6] &= ~(ONE << (np.uint64(cell) & LOW6))


@kernel
def step_out(cells, free, stride, out):
    """Fill ``out`` with the free cells one move away from some cell of ``cells``."""
    words = len(cells)
    if stride >= 64:
        _step_out_wide(cells, free, stride, out)
        return
    up, down = np.uint64(stride), np.uint64(64 - stride)
    for w in range(words):
        here = cells[w]
        near = (here << ONE) | (here >> ONE) | (here << up) | (here >> up)
        if w > 0:
            near |= (cells[w - 1] >> LOW6) | (cells[w - 1] >> down)
        if w + 1 < words:
            near |= (cells[w + 1] << LOW6) | (cells[w + 1] << down)
        out[w] = near & free[w]


@kernel
def _step_out_wide(cells, free, stride, out):
    """The same for boards whose rows are longer than a word."""
    words = len(cells)
    for w in range(words):
        out[w] = 0
    for w in range(words):
        word = cells[w]
        while word != 0:
            cell = (w << 6) + np.int64(lowest_bit(word))
            word &= word - ONE
            for other in (cell - 1, cell + 1, cell - stride, cell + stride):
                if 0 <= other < words << 6:
                    add(out, other)
    for w in range(words):
        out[w] &= free[w]
