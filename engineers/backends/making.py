"""Makes an engineer from a backend: sorts options into the chat's and the engineer's."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from engineers.common_options import COMMON_OPTIONS, raise_unless_numbers
from engineers.engineer import Engineer
from engineers.model.engineer import ModelEngineer


def engineer_on(chat_type: Callable[..., Any], model: Any, options: dict[str, Any]) -> Engineer:
    """An engineer on a chat of this type; options named like the chat's fields are the chat's, the rest the engineer's."""
    _, *chats = inspect.signature(chat_type).parameters  # the first is the model
    engineers = set(inspect.signature(ModelEngineer).parameters) - {"chat", "unused"}
    strangers = sorted(options.keys() - {*chats} - engineers - set(COMMON_OPTIONS))
    if strangers:
        known = ", ".join(sorted({*chats} | engineers))
        raise TypeError(f"{chat_type.__name__} has no option {', '.join(strangers)}; it has {known}")
    for taker in (chat_type, ModelEngineer):
        raise_unless_numbers(taker, options)
    chat = chat_type(model, **{name: value for name, value in options.items() if name in chats})
    return ModelEngineer(chat, **{name: value for name, value in options.items() if name in engineers})
