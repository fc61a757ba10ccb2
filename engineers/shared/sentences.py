"""A pydantic error in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from typing_extensions import is_typeddict


def in_sentences(error: ValidationError, below: str = "", *, of: type[BaseModel] | None = None) -> str:
    """One sentence for each fault: its place, the value if it is plain, and what is wrong. ``below`` is put before every place.

    A message that a model wrote itself names its values itself; the value of an unknown field, which may be anything, is left out.
    In its place, the fields that there are in the class ``of`` the whole data are named.
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
        said = fault["msg"].removeprefix("Value error, ")
        if fault["type"] == "extra_forbidden" and (fields := _fields_at(of, fault["loc"][:-1])):
            said = f"there is no such field: the fields are {', '.join(fields)}"
        found.append(f"{where}{': ' * bool(where)}{said}")
    return "; ".join(found)


def _fields_at(kind: Any, place: Sequence[int | str]) -> list[str]:
    """The names of the fields at this place in data of this kind; none where the kind does not say which class is there."""
    for part in place:
        fields = _fields(kind)
        parts = [one for one in get_args(kind) if one is not Ellipsis]
        kind = _alone(fields[str(part)] if str(part) in fields else parts[-1] if parts else None)
    return list(_fields(kind))


def _fields(kind: Any) -> dict[str, Any]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {field.alias or name: field.annotation for name, field in kind.model_fields.items()}
    return dict(kind.__annotations__) if is_typeddict(kind) else {}


def _alone(kind: Any) -> Any:
    """A kind without its notes, and without null beside it."""
    if get_origin(kind) is Annotated:
        return _alone(get_args(kind)[0])
    others = [one for one in get_args(kind) if one is not NoneType]
    return _alone(others[0]) if NoneType in get_args(kind) and len(others) == 1 else kind
