"""Recompiles a cached kernel after a change in any file from which it was compiled.

Numba checks only the file that defines a kernel. Our kernels call subkernels in several files: without this, numba would miss a
changed subkernel and use the old rules. Importing this module changes the check, for this package alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from numba.core.caching import CompileResultCacheImpl

PACKAGE = Path(__file__).parent
SOURCES = {  # folder -> the sources of its kernels; enums of types are constants in them
    "world": ("subkernels.py", "random_bits.py", "types.py", "world/*.py"),
    "solvers": ("subkernels.py", "types.py", "solvers/*.py"),
    "generator": ("subkernels.py", "random_bits.py", "types.py", "solvers/*.py", "generator/*.py"),
}


@cache
def digest_of_sources(folder: str) -> bytes:
    """A digest of all source text from which the folder's kernels are compiled."""
    digest = hashlib.sha256()
    for pattern in SOURCES[folder]:
        for path in sorted(PACKAGE.glob(pattern)):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.digest()


class FolderLocator:
    """Numba's own choice of a kernel's cache folder, checked against the digest of the folder's sources."""

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> Any:
        folder = Path(file).parent
        if folder.parent != PACKAGE or folder.name not in SOURCES:
            return None
        for usual in CompileResultCacheImpl._locator_classes:
            locator = None if usual is cls else usual.from_function(function, file)
            if locator is not None:
                locator.get_source_stamp = partial(digest_of_sources, folder.name)
                return locator
        return None


CompileResultCacheImpl._locator_classes.insert(0, FolderLocator)
