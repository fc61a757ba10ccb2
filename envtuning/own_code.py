"""``warn``: a warning points at the user's own code."""

from __future__ import annotations

import inspect
import traceback
import warnings

from engineers.shared.places import is_ours_or_installed


def warn(message: str) -> None:
    """Warns at the line of the user's own code that led here; if there is none, at the outermost line."""
    way = list(traceback.walk_stack(inspect.currentframe()))
    frame, line = next((place for place in way if not is_ours_or_installed(place[0])), way[-1])
    known = frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(
        message, UserWarning, frame.f_code.co_filename, line, module=frame.f_globals.get("__name__"), registry=known
    )
