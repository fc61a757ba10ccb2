"""``write_whole``: a file that appears whole or not at all, even to a process that reads it during the write."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, half_written = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(half_written, 0o644)
        os.replace(half_written, path)
    except BaseException:
        os.unlink(half_written)
        raise
    return path
