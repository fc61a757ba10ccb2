"""A user's own code, named as ``package.module:object``: of an installed package, or of a file in the current directory."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType


def import_own(name: str) -> ModuleType:
    """The module of this name; the current directory is looked at last, which the ``envtuning`` command alone would not do."""
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)
    return import_module(name)
