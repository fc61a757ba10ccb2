"""Options that a file may set: those that a world, a trainee or an engineer lists as harmless. Others need ``--trust``.

A class, or the function that makes one, declares them with ``@reads({name: kind})``. A kind is ``PLAIN``, ``DATA``, or a mapping
of the allowed keys of a library's option. A file may set every option of code that the user trusts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar, Union

from engineers.shared.own import OPTION, is_trusted, is_trusted_option

Allowed = Mapping[str, Union[str, "Allowed"]]
Made = TypeVar("Made", bound=Callable[..., Any])

PLAIN = "a number, a text, true, false, null, or a list of these"
DATA = "read and checked by this project itself"


class NotAllowed(ValueError):
    """A file sets an option that only the user may set."""


def reads(allowed: Allowed, *, rest: bool = False) -> Callable[[Made], Made]:
    """Declares the options that a file may give to this class or function, and whether a file may name more after an engineer's slash."""

    def declared(made: Made) -> Made:
        made.from_file, made.rest_from_file = allowed, rest  # type: ignore[attr-defined]
        return made

    return declared


def allowed_in(made: Any, place: str) -> Allowed | None:
    """The options that a file may give to the object at ``package.module:object``; None: any, because its code is trusted."""
    return None if is_trusted(place.partition(":")[0]) else getattr(made, "from_file", {})


def raise_unless_allowed(section: str, given: Mapping[str, Any], allowed: Allowed | None) -> None:
    """Raises ``NotAllowed`` for the first option in a run's file that needs the user's ``--trust``."""
    if allowed is None:
        return
    for name, value in given.items():
        place, kind = f"{section}.{name}", allowed.get(name)
        if is_trusted_option(place, value) or kind == DATA or (kind == PLAIN and _is_plain(value)):
            continue
        if isinstance(kind, Mapping) and isinstance(value, Mapping):
            raise_unless_allowed(place, value, kind)
        elif not (isinstance(kind, Mapping) and value is None):
            close = "".join(f" (did you mean {one}?)" for one in get_close_matches(name, allowed, 1) if one != name)
            raise not_allowed(place, value, close)


def not_allowed(place: str, value: Any, hint: str = "") -> NotAllowed:
    return NotAllowed(
        f"{place}={value!r:.60} is not an option that a file may set without your trust{hint}: leave it out, or, if you know that it "
        f"runs no code, writes no files and sends no keys, add --trust {OPTION}{place}"
    )


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_plain(one) and not isinstance(one, list | tuple) for one in value)
    return value is None or isinstance(value, bool | int | float | str)
