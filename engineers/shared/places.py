"""An error in words, and where in the user's own code, as against ours and that of installed packages, it was raised."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path
from types import FrameType

from pydantic import ValidationError

from engineers.shared.own import KNOWN
from engineers.shared.sentences import in_sentences

INSTALLED = tuple(Path(sysconfig.get_path(kind)) for kind in ("stdlib", "purelib", "platlib"))


def with_place(error: BaseException) -> str:
    """One line: "ZeroDivisionError: division by zero (mine.py, line 12)"."""
    said = str(error)
    if isinstance(error, ValidationError):  # pydantic's own text has several lines
        said = in_sentences(error)
        if any(fault["type"].startswith("frozen") for fault in error.errors()):
            said = f"a {error.title} is frozen: build another one, such as by model_copy(update=…)"
    return f"{type(error).__name__}: {said}{place_of(error)}"


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
