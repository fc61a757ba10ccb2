"""The greatest and the least length of a text that matches a schema."""

from __future__ import annotations

import json
import math
from typing import Any

SIGNIFICANT_DIGITS = 4  # of a number, relative to the range between its bounds
NUMBER_ROOM = 24  # bytes of the longest double


def finite(schema: dict[str, Any], max_length: int = 300) -> dict[str, Any]:
    """The schema with a length limit on free strings and a step on numbers with bounds: no part can continue for ever.

    ``max_length`` is in characters. Every text of the result is a text of the schema.
    """
    bounded = {key: _finite_part(value, max_length) for key, value in schema.items()}
    kinds = _types(bounded)
    if "string" in kinds and not {"enum", "const", "pattern", "format", "maxLength"} & bounded.keys():
        bounded["maxLength"] = max_length
    if "number" in kinds and {"minimum", "maximum"} <= bounded.keys() and "multipleOf" not in bounded:
        step = _step(bounded["minimum"], bounded["maximum"])
        if step is not None:
            bounded["multipleOf"] = step
    return bounded


def _finite_part(part: Any, max_length: int) -> Any:
    if isinstance(part, dict):
        return finite(part, max_length)
    if isinstance(part, list):
        return [_finite_part(item, max_length) for item in part]
    return part


def _step(low: float, high: float) -> float | None:
    """A power of ten that leaves a few significant digits of the range and has both bounds as multiples, else None."""
    if high <= low:
        return None
    step = 10.0 ** (math.floor(math.log10(high - low)) - SIGNIFICANT_DIGITS)
    on_grid = all(math.isclose(bound / step, round(bound / step), abs_tol=1e-6) for bound in (low, high))
    return float(f"{step:.0e}") if on_grid else None


def room(schema: dict[str, Any]) -> int:
    """Bytes that suffice to end any started text of the schema, if each part is closed as soon as possible.

    An upper bound in tokens too: no token is shorter than a byte.
    """
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return max(room(option) for option in schema[union])
    if "enum" in schema:
        return max(len(json.dumps(value).encode()) for value in schema["enum"])
    return max((_room_of_type(kind, schema) for kind in _types(schema)), default=NUMBER_ROOM)


def _room_of_type(kind: str, schema: dict[str, Any]) -> int:
    if kind == "object":
        members = schema.get("properties", {}).items()
        return 2 + sum(len(json.dumps(name).encode()) + 4 + room(member) for name, member in members)
    if kind == "array":
        return 2 + max(schema.get("minItems", 0), 1) * (2 + room(schema.get("items", {})))
    if kind == "string":
        return 8 + 6 * schema.get("minLength", 0)  # quotes, and a started \u escape
    return NUMBER_ROOM


def _types(schema: dict[str, Any]) -> list[str]:
    named = schema.get("type", [])
    return [named] if isinstance(named, str) else list(named)
