"""``augment``: one or two sentences of advice after a failed call, by rules that hold for all tools.

Advice for a single tool is data: a sentence for an error template, in the config's ``hints`` (``WrittenHints``).

A rule sees the call, the tool's document, the result and the tools that are offered, as the agent does. It does not see the ground
truth, so it says where to look and not what to write. Rules on arguments also give a hint when the tool reports no error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from envtuning.worlds.bfcl.documents import documented_values, is_id, parameters, required
from envtuning.worlds.bfcl.events import CallEvent
from envtuning.worlds.bfcl.hints.producers import makers, mentioned, near_in_words, producers, similar_tools, takers

ASK = "if the user has not said it, ask"
MAX_HINT = 400  # characters

Rule = Callable[[CallEvent], str | None]

_REFUSAL = re.compile(r'"(?:\w*status|success)": false')
_PRECONDITION = re.compile(
    r"must|need|before|first|please|expired|stopped|empty|closed|insufficient|no user|not (?:auth|log|regis|init|enough)",
    re.IGNORECASE,
)
# Not about a step that must come first.
_OF_A_VALUE = re.compile(r"must be (?:an? |between |positive|numbers|one of|in )", re.IGNORECASE)
_DATE = re.compile(r"\A\d{4}-\d\d-\d\d\Z")

# A document's types: those of Python, and what to say.
_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "string": ((str,), "a text"),
    "integer": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "number": ((int, float), "a number"),
    "boolean": ((bool,), "True or False"),
    "array": ((list, tuple), "a list"),
    "dict": ((dict,), "a dict"),
}


def augment(event: CallEvent) -> str | None:
    """Advice about this call; None if nothing is wrong. A ``CallAugmenter``."""
    event = replace(event, call=event.call.with_named(list(_parameters(event))))
    faults = [said for rule in ARGUMENT_RULES if (said := rule(event))]
    if not faults and complains(event):
        faults = [said for rule in RESULT_RULES if (said := rule(event))][:2]
    return " ".join(faults)[:MAX_HINT] or None


def complains(event: CallEvent) -> bool:
    """Whether the result is an error or a refusal."""
    return event.error or (_REFUSAL.search(event.result) is not None and "status" not in event.call.name)


# Rules about the call alone: what its document does not allow.


def unknown_tool(event: CallEvent) -> str | None:
    if event.document is not None or not event.error:
        return None
    similar = similar_tools(event.call, event.tools)
    if similar:
        return f"There is no tool {event.call.name}; did you mean {_either(similar)}? If none is what you need, ask the user for it."
    return "No tool of this name is offered, and none takes these arguments: tell the user what is missing and ask."


def missing_argument(event: CallEvent) -> str | None:
    needed = required(event.document) if event.document is not None else []
    missing = [name for name in needed if name not in event.call.named]
    if not missing:
        return None
    are, them = ("is", "it") if len(missing) == 1 else ("are", "them")
    return f"{_listed(missing)} {are} missing: give {them}; {ASK}."


def unexpected_argument(event: CallEvent) -> str | None:
    known = _parameters(event)
    strangers = [name for name in event.call.named if event.document is not None and name not in known]
    if not strangers:
        return None
    takes = f"{event.call.name} takes {', '.join(known)}" if known else f"{event.call.name} takes no arguments"
    fitting = takers(event.call, event.tools)
    other = f"; {_either(fitting)} takes these arguments" if fitting else ""
    return f"Leave out or rename {_listed(strangers)}: {takes}{other}."


def wrong_value(event: CallEvent) -> str | None:
    """Types, listed values and formats. If one is wrong, two values may have been exchanged."""
    checked = {name: _wanted(_parameters(event)[name], value) for name, value in _checkable(event)}
    said = [f"{name} must be {wanted}" for name, wanted in checked.items() if wanted is not None]
    if not said:
        return None
    others = [name for name, wanted in checked.items() if wanted is None][: max(0, 3 - len(said))]
    places = f" If values have changed places, check {_listed(others)} too." if others else ""
    return f"{'; '.join(said)}.{places}"


def _wanted(schema: dict[str, Any], value: Any) -> str | None:
    """What the document wants instead of this value; None if the value is right."""
    kind = schema.get("type")
    if value is not None and kind in _TYPES and not _is_of(kind, value):
        return _TYPES[kind][1]
    listed = documented_values(schema)
    values = value if isinstance(value, list) else [value]
    if listed and any(isinstance(item, str) and item not in listed for item in values):
        return f"one of {', '.join(listed)}"
    if "YYYY-MM-DD'" in schema.get("description", "") + "'" and isinstance(value, str) and not _DATE.match(value):
        return "a date like 2024-05-31"
    return None


def _is_of(kind: str, value: Any) -> bool:
    """Whether a value has a document's type; True does not count as a number."""
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind][0])


def path_for_name(event: CallEvent) -> str | None:
    if "cd" not in _offered(event):
        return None
    paths = [
        name
        for name, value in _checkable(event)
        if isinstance(value, str) and "/" in value.strip("/") and name in FILE_ARGUMENTS
    ]
    return f"{_listed(paths)} must be a name in the current directory, not a path: cd there first." if paths else None


# Rules about the result: what the tool complains of.


def unmet_precondition(event: CallEvent) -> str | None:
    """The tools for a missing first step that the message is about: press the brakes, lock the doors, log in."""
    if _PRECONDITION.search(event.result) is None or _OF_A_VALUE.search(event.result):
        return None
    tools = near_in_words(event.result, event.call, event.tools)
    return f"First call {_either(tools)}." if tools else None


def not_there(event: CallEvent) -> str | None:
    """Files that are missing in this directory or already there, and directories that are not empty."""
    names = [name for name in event.call.named if name in FILE_ARGUMENTS or name == "folder"]
    if "cd" not in _offered(event) or not names:
        return None
    if "not empty" in event.result:
        remover = "; rm removes it" if "rm" in _offered(event) else ""
        return f"Empty {_listed(names)} first: what is in it shows ls after a cd{remover}."
    if "exists" in event.result:
        return f"It is there already: go on with it, or check {_listed(names)}."
    makers_of_it = ("mkdir",) if event.call.name in ("cd", "rmdir") else ("touch", "cp")
    made = [tool for tool in makers_of_it if tool in _offered(event) and tool != event.call.name]
    new = f", what is not there yet is made with {_either(made)}" if made else ""
    return f"Check {_listed(names)}: the right directory is reached with cd{new}."


def wrong_id(event: CallEvent) -> str | None:
    """Wrong ids, and the tools that return such ids."""
    said = []
    for name in [name for name in event.call.named if is_id(name)][:3]:
        tools = producers(name, event.tools, event.call.name, _said_of(name, event))
        said.append(f"{name}: {_either(tools)} tells it" if tools else f"check {name}")
    return f"The ids may be wrong: {'; '.join(said)}." if said else None


def _said_of(name: str, event: CallEvent) -> str:
    """The argument's description, and the message too if it quotes the argument's value."""
    described = str(_parameters(event).get(name, {}).get("description", ""))
    value = str(event.call.named[name])
    return f"{described} {event.result.replace(value, '')}" if value and value in event.result else described


def not_made_yet(event: CallEvent) -> str | None:
    """The call asks for something that another tool has yet to make."""
    if _OF_A_VALUE.search(event.result):
        return None
    tools = [tool for tool in makers(event.result, event.tools) if tool != event.call.name]
    return f"It may not have been made yet, by {_either(tools)}." if tools else None


def suspects(event: CallEvent) -> str | None:
    """The arguments that the message quotes or names, or else the first few: a weak hint is better than none."""
    words = {name: value if isinstance(value, str) else repr(value) for name, value in event.call.named.items()}
    named = mentioned(words, event.result)
    quoted = [name for name, value in words.items() if name in named or (len(value) > 1 and value in event.result)]
    names = [*quoted, *(name for name in words if name not in quoted)][:3]
    return f"Check {_listed(names)} against what the user said." if names else None


ARGUMENT_RULES: tuple[Rule, ...] = (
    unknown_tool,
    missing_argument,
    unexpected_argument,
    wrong_value,
    path_for_name,
)
RESULT_RULES: tuple[Rule, ...] = (not_there, unmet_precondition, wrong_id, not_made_yet, suspects)

FILE_ARGUMENTS = ("file_name", "file_name1", "file_name2", "source", "destination", "dir_name")


def _parameters(event: CallEvent) -> dict[str, dict[str, Any]]:
    return parameters(event.document) if event.document is not None else {}


def _checkable(event: CallEvent) -> list[tuple[str, Any]]:
    """Arguments that the document knows."""
    known = _parameters(event)
    return [(name, value) for name, value in event.call.named.items() if name in known]


def _offered(event: CallEvent) -> set[str]:
    return {tool["name"] for tool in event.tools}


def _listed(names: list[str]) -> str:
    return ", ".join(names)


def _either(names: list[str]) -> str:
    return " or ".join(names)
