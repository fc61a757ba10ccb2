"""Private names of other libraries that trainees use, a file for each library. Nothing else reaches into a library.

A new version of a library may change its private names. Each file says which version it was tested with, and lists the names; a test
fails with a sentence if the installed version lacks one.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from importlib.metadata import version


def missing(library: str, tested: str, names: Mapping[type, Iterable[str]]) -> list[str]:
    """A sentence for each name that its class no longer has, as a member or as an attribute that its code sets."""
    found = f"{library} {version(library)}" if tested[0].isdigit() else library
    return [
        f"{found} has no {owner.__name__}.{name}, which envtuning uses: install {library} {tested}, with which it was tested"
        for owner, wanted in names.items()
        for name in wanted
        if not hasattr(owner, name) and not _sets(owner, name)
    ]


def _sets(owner: type, name: str) -> bool:
    """Whether the code of the class or of its bases sets this attribute."""
    bases = [base for base in owner.__mro__ if base.__module__ != "builtins"]
    return any(f"self.{name}" in inspect.getsource(base) for base in bases)
