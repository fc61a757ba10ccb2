"""``WrittenHints``: hints that an engineer wrote into the config, by error template; where it wrote none, the rules' hints are used.

A template is an error message without its values, so that one hint serves all of its kind.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from envtuning.worlds.bfcl.events import CallEvent
from envtuning.worlds.bfcl.hints.rules import augment

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|\[[^\]]*\]|\{[^}]*\}")
_VALUES = re.compile(r"(?<!\S)[^\s\d]*\d\S*")  # it begins at the start of a word, so every word is read once
_TOOL = re.compile(r"\b\w+\.(\w+\(\))")
_SHELL = re.compile(r"\A(\w+): (?!No |cannot|invalid|path|Unsupported)[^:]+:")


@dataclass(frozen=True)
class WrittenHints:
    """An augmenter that uses the written hints; for an empty hint the rules' hint is used."""

    hints: Mapping[str, str]

    def __call__(self, event: CallEvent, /) -> str | None:
        if event.error and (hint := self.hints.get(template_of(event.call.name, event.result))):
            return hint
        return augment(event)


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
