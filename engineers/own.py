"""A user's own code, named as ``package.module:object``: of an installed package, or of a file in the current directory."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any


def object_at(place: str) -> Any:
    """The object at ``package.module:object``. Raises ``ImportError``, in a sentence that a caller's own can end with.

    The current directory is looked at last, which an installed command alone would not do. The error's ``name`` is the module
    that is missing, as Python's own.
    """
    module_name, _, attribute = place.partition(":")
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)
    try:
        module = import_module(module_name)
    except ImportError as error:
        raise ImportError(f"{module_name!r} cannot be imported ({error})", name=error.name) from error
    except (ValueError, TypeError) as error:  # an empty or a relative module name
        raise ImportError(f"{module_name!r} cannot be imported ({error})", name=module_name) from error
    if not hasattr(module, attribute):
        raise ImportError(f"{module_name} has no {attribute!r}", name=module_name)
    return getattr(module, attribute)
