"""Where in the user's own code, as against ours and that of installed packages, an error was raised."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path
from types import FrameType

from engineers.shared.own import KNOWN

INSTALLED = tuple(Path(sysconfig.get_path(kind)) for kind in ("stdlib", "purelib", "platlib"))


def place_of(error: BaseException) -> str:
    """Where a user's own code raised this, as " (mine.py, line 12)"; empty if none of it was called.

    The file is the first one on the way that belongs neither to this package nor to an installed one; the line is the last one in it.
    """
    own = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not is_ours_or_installed(frame)
    ]
    if not own:
        return ""
    file, line = [place for place in own if place[0] == own[0][0]][-1]
    return f" ({Path(file).name}, line {line})"


def is_ours_or_installed(frame: FrameType) -> bool:
    """Files in angle brackets (``<frozen …>``) are Python's own."""
    file, module = frame.f_code.co_filename, frame.f_globals.get("__name__") or ""
    if module.partition(".")[0] in KNOWN or file.startswith("<"):
        return True
    return any(Path(file).is_relative_to(folder) for folder in INSTALLED)
