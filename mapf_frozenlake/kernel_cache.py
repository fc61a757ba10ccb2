"""Recompiles a cached kernel after a change in any file from which it was compiled.

Numba checks only the file that defines a kernel. Our kernels call subkernels in several files: without this, numba would miss a
changed subkernel and use the old rules. Importing this module changes the check, for this package alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from mapf_frozenlake.numba_private import stamp_caches

PACKAGE = Path(__file__).parent
SOURCES = {  # folder -> the sources of its kernels; numbers of constants and map_families are compiled into them
    "world": ("numba_private.py", "random_bits.py", "constants.py", "world/*.py"),
    "solvers": ("numba_private.py", "constants.py", "solvers/*.py"),
    "generator": ("numba_private.py", "random_bits.py", "constants.py", "map_families.py", "solvers/*.py", "generator/*.py"),
}  # fmt: skip


@cache
def digest_of_sources(folder: str) -> bytes:
    """A digest of all source text from which the folder's kernels are compiled."""
    digest = hashlib.sha256()
    for pattern in SOURCES[folder]:
        for path in sorted(PACKAGE.glob(pattern)):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.digest()


def _stamp_of(file: Path) -> Callable[[], bytes] | None:
    folder = file.parent
    if folder.parent != PACKAGE or folder.name not in SOURCES:
        return None
    return partial(digest_of_sources, folder.name)


stamp_caches(_stamp_of)
