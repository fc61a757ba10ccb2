"""Weights are often saved in bfloat16, which many processors only emulate: there float32 is several times as fast."""

from __future__ import annotations

import time
import warnings
from functools import cache
from typing import Any

ROWS, WIDTH, ROUNDS = 128, 1024, 3  # of the product that is timed: some hundredths of a second
MUCH = 2.0  # times as long as float32, from where a warning is worth its place


def warn_if_emulated(model: Any, remedy: str) -> None:
    """Warns of a model in a type that this processor multiplies much more slowly than float32. ``remedy`` sets float32."""
    import torch

    if model.device.type != "cpu" or model.dtype not in (torch.bfloat16, torch.float16):
        return
    times = times_float32(model.dtype)
    if times >= MUCH:
        kind = str(model.dtype).removeprefix("torch.")
        warnings.warn(
            f"the model's weights are in {kind}, and a product in it takes {times:.0f} times as long on this processor as in float32: "
            f"{remedy} is faster, and takes twice the memory",
            stacklevel=2,
        )


@cache
def times_float32(dtype: Any) -> float:
    """How many times as long as in float32 a product takes in this type."""
    import torch

    return _seconds(dtype) / _seconds(torch.float32)


def _seconds(dtype: Any) -> float:
    """CPU seconds of the quickest round, the first one aside, which sets up the product."""
    import torch

    rows, weights = torch.ones(ROWS, WIDTH, dtype=dtype), torch.ones(WIDTH, WIDTH, dtype=dtype)
    taken = []
    with torch.no_grad():
        for _ in range(1 + ROUNDS):
            begin = time.process_time()
            torch.nn.functional.linear(rows, weights)
            taken.append(time.process_time() - begin)
    return min(taken[1:])
