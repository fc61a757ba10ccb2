"""A command runs nothing of the folder that it is started in, which may be a stranger's; ``python -m`` and ``python -c`` do, as Python has it."""

from __future__ import annotations

import os
import sys

NUMBA = ".numba_config.yaml"  # by which Numba loads compiled code, and so runs it, from a folder that the file names


def leave_it_alone() -> None:
    """Raises ``ImportError`` where a library that is to be imported would run code of this folder. For the processes that this one starts, too."""
    if os.path.exists(NUMBA):
        raise ImportError(
            f"{NUMBA} in this folder tells Numba which compiled code to run: start elsewhere, or remove it and set what it says as "
            "environment variables (NUMBA_…)"
        )
    if not is_imported_from():
        os.environ["PYTHONSAFEPATH"] = "1"


def is_imported_from() -> bool:
    """Whether this process imports modules of the current folder."""
    return any(_is_here(place) for place in sys.path)


def _is_here(place: str) -> bool:
    try:
        return os.path.samefile(place or ".", ".")
    except OSError:  # one of the two is gone
        return False
