"""Files that only grow: a line is whole and on the disk before the process continues."""

from __future__ import annotations

import os
from pathlib import Path


def append_line(path: Path, line: bytes) -> None:
    """Add a line and sync it to the disk. A line before it that was cut off, because its process was killed, is ended first."""
    with path.open("ab+") as file:
        if file.seek(0, os.SEEK_END) > 0:
            file.seek(-1, os.SEEK_END)
            if file.read() != b"\n":
                line = b"\n" + line
        file.write(line + b"\n")
        file.flush()
        os.fsync(file.fileno())
