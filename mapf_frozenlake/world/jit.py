"""How the world is compiled: once per machine (the cache), without the GIL, integer division as the hardware does it.

The kernels allocate nothing, so they also go without reference counts: counting the views that one env's step takes of the
batch's arrays would cost several times the step.
"""

from __future__ import annotations

from numba import njit

from mapf_frozenlake.parts import PART

_SHARED = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

allocating = njit(**_SHARED)  # called from Python, makes arrays
kernel = njit(**_SHARED, _nrt=False)  # called from Python, makes none
# Called from kernels: passing a State costs more than most parts do.
part = njit(nogil=True, error_model="numpy", _nrt=False, forceinline=True, **PART)
# A part that calls parts, and is called once per kernel: compiled with its caller, or each layer would optimise all below.
inlined = njit(nogil=True, error_model="numpy", _nrt=False, inline="always")
