"""Reads a tool's document: the values that it lists for an argument, and which arguments are ids."""

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
    """The values that an argument may take, if its description lists them; else empty."""
    return _documented_values(schema.get("description", ""))


@lru_cache(maxsize=1024)
def _documented_values(description: str) -> tuple[str, ...]:
    if (listed := _LISTED.search(description)) is not None:
        return tuple(value.strip().strip("\"'") for value in listed.group(1).split(",") if value.strip())
    return tuple(_QUOTED.findall(description))


ID_WORDS = ("id", "symbol", "stock", "token", "cityA", "cityB", "travel_from", "travel_to")


def is_id(name: str) -> bool:
    """Whether an argument is an id that another tool returns, rather than something that the user says."""
    return name in ID_WORDS or name.endswith("_id") or name.endswith("_token")
