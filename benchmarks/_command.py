"""How a benchmark's command ends where its caller can mend what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from engineers.errors import Mendable


@contextmanager
def errors_in_one_sentence() -> Iterator[None]:
    """With the error's sentence alone, without a traceback, as ``envtuning`` ends."""
    try:
        yield
    except (Mendable, ImportError) as error:
        raise SystemExit(str(error)) from error
