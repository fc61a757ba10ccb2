"""Reads a tool's document: the values that it lists for an argument, which arguments are ids, and calls that it allows."""

from __future__ import annotations

import random
import re
from functools import lru_cache
from typing import Any

from envtuning.worlds.bfcl.calls import Call

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


def random_call(document: dict[str, Any], generator: random.Random) -> Call:
    """A random call that the document allows."""
    parameters = document["parameters"]
    required = parameters.get("required", [])
    wanted = [name for name in parameters["properties"] if name in required or generator.random() < 0.3]
    return Call(document["name"], (), {name: _any_value(parameters["properties"][name], generator) for name in wanted})


def _any_value(schema: dict[str, Any], generator: random.Random) -> Any:
    if "enum" in schema:
        return generator.choice(schema["enum"])
    kind = schema.get("type")
    if kind in ("integer", "float", "number"):
        return generator.choice([0, 1, 2, 5, 10, 100]) if kind == "integer" else generator.choice([0.0, 0.5, 1.0, 50.0])
    if kind == "boolean":
        return generator.random() < 0.5
    if kind in ("array", "tuple"):
        return [_any_value(schema.get("items", {"type": "string"}), generator) for _ in range(generator.randint(0, 2))]
    if kind == "dict":
        return {}
    return generator.choice(["", ".", "..", "report.txt", "documents", "AAPL", "USR001", "1", "economy", "2024-05-01"])
