"""A command runs no code of the current folder, which may be a stranger's. ``python -m`` and ``python -c`` do, as always in Python."""

from __future__ import annotations

import os
import sys

NUMBA = ".numba_config.yaml"  # with this file, Numba loads and runs compiled code from any folder that the file names


def import_nothing_from_here() -> None:
    """Raises ``ImportError`` if importing a library would run code of this folder. Child processes are protected, too."""
    if os.path.exists(NUMBA):
        raise ImportError(
            f"{NUMBA} in this folder can make Numba run other code: start in another folder, or remove the file "
            "and set its options as environment variables (NUMBA_…)"
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
