"""How a backend becomes an engineer: is its SDK there, which options are the chat's, which the engineer's."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from importlib.util import find_spec
from typing import Any

from engineers.proposal import Engineer


def require(*modules: str, extra: str) -> None:
    """Raise ``ImportError`` with the command that installs ``extra`` when a module is missing. Imports nothing."""
    missing = [name for name in modules if not _is_installed(name)]
    if missing:
        raise ImportError(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed: "
            f'pip install "mapf-frozenlake[{extra}]", or in a checkout pip install ".[{extra}]"',
            name=missing[0],
        )


def engineer_on(chat_type: Callable[..., Any], model: Any, options: dict[str, Any]) -> Engineer:
    """An engineer on a chat of this type; options named like the chat's fields are the chat's, the rest the engineer's."""
    from engineers.model.engineer import ModelEngineer
    from engineers.registry import COMMON_OPTIONS

    chats = {field.name for field in fields(chat_type)}  # type: ignore[arg-type]
    engineers = set(inspect.signature(ModelEngineer).parameters) - {"chat", "unused"}
    strangers = sorted(options.keys() - chats - engineers - set(COMMON_OPTIONS))
    if strangers:
        known = ", ".join(sorted(chats | engineers))
        raise TypeError(f"{', '.join(strangers)}: no such option of {chat_type.__name__}; there are {known}")
    chat = chat_type(model, **{name: value for name, value in options.items() if name in chats})
    return ModelEngineer(chat, **{name: value for name, value in options.items() if name in engineers})


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # a parent package of a dotted name is missing
        return False
