"""A user's own code, named as ``package.module:object``: from an installed package or a file in the current directory.

Naming code runs it. In a script, the script's author names it. A command reads names from files, which another person may
have written: it calls ``trust_only`` first, and then imports only modules that its user named on the command line.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

KNOWN = (
    "engineers",
    "envtuning",
    "mapf_frozenlake",
    "stable_baselines3",
)  # packages that nobody needs to be asked about
_trusted: frozenset[str] | None = None  # None: every name is the caller's own


class NotTrusted(ImportError):
    """The module is named by a file alone."""


def trust_only(names: Iterable[str] | None) -> None:
    """From now on import only these modules, and send keys only to these hosts or their provider's; None: whatever is named."""
    global _trusted
    _trusted = None if names is None else frozenset(names)


def trusted() -> frozenset[str] | None:
    """The last argument of ``trust_only``, to pass on to a process that this one starts."""
    return _trusted


def is_trusted(name: str) -> bool:
    """Whether the user named this module, a package that it is in, or this host."""
    parts = name.split(".")
    return (
        _trusted is None or name in _trusted or any(".".join(parts[:end]) in _trusted for end in range(1, len(parts)))
    )


def object_at(place: str) -> Any:
    """The object at ``package.module:object``. Raises ``ImportError``, in a sentence that a caller's own can end with.

    The current directory is looked at last, which an installed command alone would not do. The error's ``name`` is the module
    that is missing, as Python's own.
    """
    module_name, _, attribute = place.partition(":")
    if module_name.partition(".")[0] not in KNOWN and not is_trusted(module_name):
        raise NotTrusted(
            f"{module_name!r} cannot be imported on a file's word, because that runs its code: if you trust it, add "
            f"--trust {module_name}",
            name=module_name,
        )
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)
    try:
        module = import_module(module_name)
    except ImportError as error:
        raise ImportError(f"{module_name!r} cannot be imported ({error})", name=error.name) from error
    except (ValueError, TypeError) as error:  # an empty or a relative module name
        raise ImportError(f"{module_name!r} cannot be imported ({error})", name=module_name) from error
    except (Exception, SystemExit) as error:  # its own code raised, or would end this process
        said = f"its code raised {type(error).__name__}: {error}"
        raise ImportError(f"{module_name!r} cannot be imported ({said})", name=module_name) from error
    if not hasattr(module, attribute):
        raise ImportError(f"{module_name} has no {attribute!r}", name=module_name)
    return getattr(module, attribute)


def declares(found: Any, kind: type) -> bool:
    """Whether this is a class of that kind, or a function whose return annotation says that it makes one.

    Merely callable is not enough: ``os.system`` is. For a protocol, a class of the kind has all of its methods.
    """
    made = found if isinstance(found, type) else _said_to_return(found)
    if isinstance(made, str):  # an annotation that cannot be looked up here
        return made.strip("\"'").partition("[")[0].rpartition(".")[2] == kind.__name__
    made = getattr(made, "__origin__", made)
    if not isinstance(made, type):
        return False
    if not getattr(kind, "_is_protocol", False):
        return issubclass(made, kind)
    methods = [name for name, value in vars(kind).items() if callable(value) and not name.startswith("_")]
    return all(callable(getattr(made, name, None)) for name in methods)


def _said_to_return(function: Any) -> Any:
    written = getattr(function, "__annotations__", {}).get("return")
    try:
        return get_type_hints(function).get("return", written)
    except Exception:  # names that exist for the type checker alone
        return written
