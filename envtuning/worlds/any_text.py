"""``AnyText``: the space of observations and actions that are strings."""

from __future__ import annotations

from typing import Any

from gymnasium import spaces
from gymnasium.error import CustomSpaceError
from gymnasium.vector.utils import create_shared_memory

CHARACTERS = " \nabcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:,.[](){}=\"'-_/"


class AnyText(spaces.Text):
    """Every string up to ``max_length``; samples consist of a few usual characters."""

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and len(x) <= self.max_length


@create_shared_memory.register
def _refuse_shared_memory(space: AnyText, n: int = 1, ctx: Any = None) -> Any:
    """``AsyncVectorEnv`` reads its shared memory once before it holds a text. The error names the argument to pass."""
    raise CustomSpaceError("text cannot go through shared memory: give shared_memory=False")
