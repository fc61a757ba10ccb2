"""Sets the random state and the threads of the process, for trainers that use both."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def set_threads(count: int | None) -> Iterator[None]:
    """Set PyTorch's number of threads (None: one per core), and restore it afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def random_state_kept() -> Iterator[None]:
    """Restores the generators of Python, NumPy and PyTorch afterwards, also those of the GPUs in use."""
    before = random.getstate(), np.random.get_state()  # noqa: NPY002
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=devices):
        try:
            yield
        finally:
            random.setstate(before[0])
            np.random.set_state(before[1])  # noqa: NPY002


@contextmanager
def process_state(seed: int, torch_threads: int) -> Iterator[None]:
    """Seeds the generators of Python, NumPy and PyTorch and sets PyTorch's threads; all are restored afterwards."""
    with set_threads(torch_threads), random_state_kept():
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(seed)
        yield
