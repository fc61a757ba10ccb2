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

from mapf_frozenlake.numba_private import Dispatcher, is_cached


def is_compiled(compiled: Dispatcher, arguments: tuple[Any, ...]) -> bool:
    """Whether a call with these arguments finds machine code, in this process or in the machine's cache."""
    signature = tuple(typeof(argument) for argument in arguments)
    return signature in compiled.overloads or is_cached(compiled, signature)


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
