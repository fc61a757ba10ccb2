"""Where the exam keeps what takes long to make and can be made again: trained roots, and questions."""

import os
from pathlib import Path


def kept_in() -> Path:
    """``ENVTUNING_EXAM``, or a folder in the user's cache."""
    named = os.environ.get("ENVTUNING_EXAM")
    return Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "envtuning-exam"
