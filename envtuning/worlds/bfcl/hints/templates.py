"""``template_of``: an error message without its values, so that one hint serves all of its kind."""

from __future__ import annotations

import json
import re

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|\[[^\]]*\]|\{[^}]*\}")
_VALUES = re.compile(r"(?<!\S)[^\s\d]*\d\S*")  # it begins at the start of a word, so every word is read once
_TOOL = re.compile(r"\b\w+\.(\w+\(\))")
_SHELL = re.compile(r"\A(\w+): (?!No |cannot|invalid|path|Unsupported)[^:]+:")


def template_of(tool: str, result: str) -> str:
    """``tool: message`` with blanks for quoted values and for words with a digit: "cancel_order: Order with ID {} not found."."""
    return f"{tool}: {_blank(_message(result))}"[:200]


def _message(result: str) -> str:
    """The message in a result."""
    if result.startswith("{"):
        try:
            said = json.loads(result)
        except ValueError:
            return result
        return str(said.get("error", said.get("message", result)))
    return result.removeprefix("Error during execution: ")


def _blank(message: str) -> str:
    """Repeats until nothing changes: a blank can close an open bracket."""
    while (blanked := _blank_once(message)) != message:
        message = blanked
    return message


def _blank_once(message: str) -> str:
    message = _TOOL.sub(r"\1", _QUOTED.sub("{}", message))
    message = _SHELL.sub(r"\1: {}:", message)
    return " ".join(_VALUES.sub("{}", message).split())


def is_template(key: str) -> bool:
    """Whether a key has no value left to blank."""
    _, colon, message = key.partition(": ")
    return bool(colon and message) and _blank(message) == message
