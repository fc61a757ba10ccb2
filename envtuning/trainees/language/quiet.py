"""Silences transformers' progress bars, its deprecation warnings to TRL and TRL's notes: the loop's console prints for the run."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars for weights, and no warnings about names that TRL still uses; restored afterwards."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=FutureWarning, module=r"transformers\.")
            warnings.filterwarnings("ignore", message="You are using 'rollout_func'", category=UserWarning)
            yield
    finally:
        if shown:
            logging.enable_progress_bar()
