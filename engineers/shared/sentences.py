"""A pydantic error in sentences."""

from __future__ import annotations

from pydantic import ValidationError


def in_sentences(error: ValidationError, below: str = "") -> str:
    """One sentence for each fault: its place, the value if it is plain, and what is wrong. ``below`` is put before every place.

    A message that a model wrote itself names its values itself; the value of an unknown field, which may be anything, is left out.
    """
    found = []
    faults = error.errors()
    for fault in faults:
        depth = len(fault["loc"])
        if fault["type"] == "too_short" and any(
            one["loc"][:depth] == fault["loc"] for one in faults if one is not fault
        ):
            continue  # pydantic counts the entries without a fault
        where = ".".join([below] * bool(below) + [str(part) for part in fault["loc"]])
        plain = isinstance(fault["input"], str | int | float | bool | None)
        if where and plain and fault["type"] not in ("value_error", "extra_forbidden"):
            where = f"{where}={fault['input']!r:.60}"
        found.append(f"{where}{': ' * bool(where)}{fault['msg'].removeprefix('Value error, ')}")
    return "; ".join(found)
