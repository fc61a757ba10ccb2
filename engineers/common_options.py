"""The options that a loop gives to every engineer; an engineer that does not take one is made without it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from typing import Any

from engineers.from_file import DATA, PLAIN, Allowed

# A file may give these to any engineer:
COMMON_FROM_FILE: Allowed = {
    **dict.fromkeys(("seed", "max_attempts", "max_cost", "max_total_tokens"), PLAIN),
    **dict.fromkeys(("space", "context"), DATA),
}
LOOPS_OWN = ("guard", "transcript", "ledger", "desk")
COMMON_OPTIONS = (*COMMON_FROM_FILE, *LOOPS_OWN)


def require_common(engineer: str, unused: Mapping[str, Any]) -> None:
    """Raise ``TypeError`` unless the options that an engineer does not take are ``COMMON_OPTIONS``."""
    strangers = sorted(unused.keys() - set(COMMON_OPTIONS))
    if strangers:
        raise TypeError(f"{engineer} has no option {', '.join(strangers)}")


def raise_unless_numbers(made: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Raise ``TypeError`` for an option of another type where this class or function is annotated with a number."""
    functions = [made]
    if isinstance(made, type):  # it may pass on options to the classes that it derives from
        functions = [vars(kind)["__init__"] for kind in reversed(made.__mro__) if "__init__" in vars(kind)]
    arguments = {name: one for function in functions for name, one in inspect.signature(function).parameters.items()}
    for name, value in given.items():
        if name not in arguments or value is arguments[name].default:
            continue
        if wanted := _wanted_instead(value, arguments[name].annotation):
            raise TypeError(f"option {name}={value!r:.60}: give {wanted}")


def _wanted_instead(value: Any, annotation: Any) -> str:
    """What to give in place of this value; empty if it fits, or if its annotation is no number."""
    said = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    kind = said.removesuffix(" | None")
    if value is None and kind != said:
        return ""
    if kind in ("int", "float"):
        return "" if _is_number(value) else "a number"
    if kind.endswith("Sequence[float]"):
        return "" if isinstance(value, Iterable) and all(map(_is_number, value)) else "a list of numbers"
    return ""


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
