"""Random calls that a tool's document allows."""

from __future__ import annotations

import random
from typing import Any

from envtuning.worlds.bfcl.calls import Call


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
