"""What is slow to import, imported where a test first uses it: each test process reads every test file and runs its share."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest


class Lazy:
    """Stands for a module that is imported when something of it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith(("_", "pytest")):  # pytest looks for marks and hooks at everything in a test file
            raise AttributeError(attribute)
        return getattr(import_module(self._name), attribute)


def needed(*packages: str, extra: str) -> None:
    """Skip the test file where one of these is not installed; import none of them."""
    for package in packages:
        if find_spec(package) is None:
            pytest.skip(f"needs {package}: pip install 'mapf-frozenlake[{extra}]'", allow_module_level=True)
