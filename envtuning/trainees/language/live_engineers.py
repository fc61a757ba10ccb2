"""Engineers on the model under training: ``checkpoint`` and ``base``. They exist only inside a run.

``checkpoint``  the current trainee reads the report and writes the next config, constrained to the schema
``base``        the model that the run began with does the same

Both are asked between two stages, in the training process, and do not change the trainee.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from engineers.engineer import Engineer
from engineers.from_file import PLAIN, Allowed, reads
from engineers.model.engineer import FROM_FILE as ENGINEER

_CHAT: Allowed = {
    **ENGINEER,
    **dict.fromkeys(("constrained", "longest_string", "temperature", "thinking", "time_limit"), PLAIN),
}


def live_engineer(name: str, trainee: Any, *, timeout: float | None = None, **options: Any) -> Engineer:
    """The engineer on this trainee's current model; the trainee is None before the run. ``options`` are ``LiveChat``'s and ``ModelEngineer``'s.

    ``timeout`` bounds one reply, in seconds, if ``time_limit`` is not given.
    """
    from engineers.backends import live

    options = {"time_limit": timeout, "name": name} | options
    if trainee is None or trainee.group is not None:
        return remote_engineer(name, trainee and trainee.group, options)
    model, tokenizer = trainee.language_model() if name == "checkpoint" else trainee.base_model()
    return live.make(model=model, tokenizer=tokenizer, called=f"live/{name}", **options)


def remote_engineer(name: str, group: Any, options: dict[str, Any]) -> Engineer:
    """The same on a model that a group of workers holds."""
    from engineers.backends.live import LiveChat
    from engineers.model.engineer import ModelEngineer
    from envtuning.trainees.language.workers import RemoteChat

    chats = {field.name for field in fields(LiveChat)} - {"model"}
    chat = RemoteChat(group, name, {key: value for key, value in options.items() if key in chats})
    return ModelEngineer(chat, **{key: value for key, value in options.items() if key not in chats})


def _named(name: str) -> Callable[..., Engineer]:
    """The function that ``engineers.make`` calls."""

    @reads(_CHAT)
    def make(rest: str = "", *, trainee: Any, timeout: float | None = None, **options: Any) -> Engineer:
        return live_engineer(name, trainee, timeout=timeout, **options)

    make.needs_trainee = True  # type: ignore[attr-defined]
    return make


checkpoint, base = _named("checkpoint"), _named("base")
