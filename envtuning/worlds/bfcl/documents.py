"""What a tool's document says about its arguments, beyond their names: the values that a description lists, and what is an id."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

_LISTED = re.compile(r"(?:\[Enum\]:|[Oo]ptions(?: are)?:)\s*\[?([^\].]*)\]?")
_QUOTED = re.compile(r"'(\w+)' for ")


def parameters(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return document["parameters"]["properties"]


def required(document: dict[str, Any]) -> list[str]:
    return list(document["parameters"].get("required", ()))


def documented_values(schema: dict[str, Any]) -> tuple[str, ...]:
    """The values that an argument may take, where its description lists them; empty where it does not."""
    return _documented_values(schema.get("description", ""))


@lru_cache(maxsize=1024)
def _documented_values(description: str) -> tuple[str, ...]:
    if (listed := _LISTED.search(description)) is not None:
        return tuple(value.strip().strip("\"'") for value in listed.group(1).split(",") if value.strip())
    return tuple(_QUOTED.findall(description))


ID_WORDS = ("id", "symbol", "stock", "token", "cityA", "cityB", "travel_from", "travel_to")


def is_id(name: str) -> bool:
    """Whether an argument wants a handle that another tool gives out, rather than words of the user's."""
    return name in ID_WORDS or name.endswith("_id") or name.endswith("_token")
