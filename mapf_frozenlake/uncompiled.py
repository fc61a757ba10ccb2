"""Runs compiled functions as plain Python: the same results, without the seconds of compilation.

It is for functions that are called only a few times. Numba's ``py_func`` is not enough, because it calls the compiled parts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np
from numba import typeof
from numba.core.dispatcher import Dispatcher


def is_compiled(compiled: Dispatcher, arguments: tuple[Any, ...]) -> bool:
    """Whether a call with these arguments finds machine code, in this process or in the machine's cache."""
    signature = tuple(typeof(argument) for argument in arguments)
    if signature in compiled.overloads:
        return True
    cache_of: Any = vars(compiled)["_cache"]  # numba has no public way to ask
    cached = getattr(cache_of, "_cache_file", None)  # None: without a cache
    return cached is not None and cached.load(cache_of._index_key(signature, compiled.targetctx.codegen())) is not None


def uncompiled(compiled: Dispatcher) -> Callable[..., Any]:
    """The function in plain Python, and likewise all functions that it calls. Numbers overflow silently, as in machine code."""
    return np.errstate(over="ignore")(_plain(compiled))


@cache
def _plain(compiled: Dispatcher) -> FunctionType:
    function = compiled.py_func
    names = dict(function.__globals__)
    for name in function.__code__.co_names:
        if isinstance(names.get(name), Dispatcher):
            names[name] = _plain(names[name])
    return FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
