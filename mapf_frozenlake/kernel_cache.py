"""Cached kernels are as fresh as every file they were compiled from.

Numba looks at the one file a kernel stands in. Ours are made of parts from several: without this, a new version of a part
would go unnoticed, and the old rules would be played on. Importing this module sees to it, for this package alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from numba.core.caching import CompileResultCacheImpl

PACKAGE = Path(__file__).parent
SOURCES = {  # folder -> what its kernels are compiled from; enums of types are constants in them
    "world": ("parts.py", "types.py", "world/*.py"),
    "solvers": ("parts.py", "types.py", "solvers/*.py"),
    "generator": ("parts.py", "types.py", "world/jit.py", "world/rng.py", "solvers/*.py", "generator/*.py"),
}


@cache
def digest_of_sources(folder: str) -> bytes:
    """The same for the same source text of everything that the folder's kernels are compiled from."""
    digest = hashlib.sha256()
    for pattern in SOURCES[folder]:
        for path in sorted(PACKAGE.glob(pattern)):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.digest()


class FolderLocator:
    """Numba's own choice of where a kernel's cache lies, with the folder's sources as what it is checked against."""

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
