"""Compiler options of the world: cached on the machine, without the GIL, with the hardware's integer division.

The kernels allocate nothing, so they need no reference counts. One env's step takes many views of the batch's arrays, and
counting these would take several times as long as the step.
"""

from __future__ import annotations

from numba import njit

from mapf_frozenlake.numba_private import NO_COUNTS, SUBKERNEL

_SHARED = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

allocating = njit(**_SHARED)  # called from Python, makes arrays
kernel = njit(**_SHARED, **NO_COUNTS)  # called from Python, makes none
# Called from kernels: passing a State takes longer than most of these functions.
subkernel = njit(nogil=True, error_model="numpy", forceinline=True, **NO_COUNTS, **SUBKERNEL)
# A subkernel for what most batches never do: it stays a function of its own, because inlined it would be optimised again in each kernel.
rare = njit(nogil=True, error_model="numpy", **NO_COUNTS, **SUBKERNEL)
# A subkernel that calls subkernels, and is called once per kernel, is compiled with its caller. Else each layer would optimise all below.
inlined = njit(nogil=True, error_model="numpy", inline="always", **NO_COUNTS)
