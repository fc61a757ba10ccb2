"""Modules that have moved: importing one by its old name fails with the new name in the message."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # this is imported before a command can answer, and typing takes long
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class _OldNames:
    def __init__(self, new_names: Mapping[str, str]) -> None:
        self.new_names = new_names

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name in self.new_names:
            raise ModuleNotFoundError(f"{name} has moved: import {self.new_names[name]}", name=name)
        return None


def announce(new_names: Mapping[str, str]) -> None:
    """Name the new place of each module; asked last, so that it never hides a module that exists."""
    sys.meta_path.append(_OldNames(new_names))
