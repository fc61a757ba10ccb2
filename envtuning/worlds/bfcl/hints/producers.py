"""Finds the tool that a hint should name: by what the tools return or take, or by the words in their names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any

from envtuning.worlds.bfcl.calls import Call
from envtuning.worlds.bfcl.documents import parameters, required

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
MOST = 2  # likely tools that a hint names
_COMMON = (
    "a all an and are be been before by can cannot data during error execution for from get has have here id in info "
    "information invalid is it list must no not of on or set status the to user view when with your you"
)
COMMON = frozenset(_COMMON.split())
MAKING = frozenset(
    ["create", "post", "add", "book", "place", "register", "purchase", "send", "fund", "comment", "buy", "fill"]
)


def similar_tools(call: Call, tools: Sequence[dict[str, Any]]) -> list[str]:
    """Tools with similar names, the most similar first; else tools that take exactly these arguments."""
    plain = {_plain(tool["name"]): tool["name"] for tool in tools}
    wanted = _plain(call.name)
    inside = [name for key, name in plain.items() if wanted.startswith(key) and len(wanted) - len(key) <= 4]
    alike = [plain[key] for key in difflib.get_close_matches(wanted, plain, cutoff=0.75)]
    found = list(dict.fromkeys([*sorted(inside, key=len, reverse=True), *alike]))[:MOST]
    return found or takers(call, tools)


def takers(call: Call, tools: Sequence[dict[str, Any]]) -> list[str]:
    """Tools that take the given arguments and require no others."""
    given = set(call.named)
    if not given:
        return []
    fitting = [tool["name"] for tool in tools if given <= set(parameters(tool)) and set(required(tool)) <= given]
    return fitting[:MOST]


def producers(argument: str, tools: Sequence[dict[str, Any]], asker: str, said: str = "") -> list[str]:
    """Tools that produce a value for this argument: the tool returns something of that name, or its own name contains the
    argument's, or else a word of ``said``. A login produces only what it returns.
    """
    wanted, told = _stems(argument) - COMMON, _stems(said) - _stems(argument) - COMMON
    returning: list[str] = []
    named_after: list[str] = []
    near: list[str] = []
    for tool in tools:
        if tool["name"] == asker or argument in required(tool):
            continue
        returned = tool.get("response", {}).get("properties", {})
        words = _stems(tool["name"]) | _stems(" ".join(returned))
        if argument in returned:
            returning.append(tool["name"])
        elif _logs_in(tool):
            continue
        elif wanted and wanted <= words:
            named_after.append(tool["name"])
        elif _stems(tool["name"]) & told:
            near.append(tool["name"])
    return [*returning, *named_after][:MOST] or near[:MOST]


def makers(message: str, tools: Sequence[dict[str, Any]]) -> list[str]:
    """Tools that make what a message reports as missing: book_flight for a booking, post_tweet for a tweet."""
    words = _stems(message) - COMMON
    return [name for name in (tool["name"] for tool in tools) if _stems(name) & words and _verb(name) in MAKING][:MOST]


def near_in_words(message: str, call: Call, tools: Sequence[dict[str, Any]]) -> list[str]:
    """Tools whose names share the most words with the message; if it asks for a login, the tools that log in."""
    words = _stems(message) - COMMON - _stems(" ".join(map(str, call.named.values())))
    if words & {"authent", "log", "login", "token"}:
        return [tool["name"] for tool in tools if _logs_in(tool) and "status" not in tool["name"]][:3]
    scored = [
        (len((_stems(tool["name"]) - COMMON) & words), tool["name"]) for tool in tools if tool["name"] != call.name
    ]
    least = 2 if any(score >= 2 for score, _ in scored) else 1
    return [name for score, name in sorted(scored, key=lambda entry: -entry[0]) if score >= least][:3]


def mentioned(names: Iterable[str], message: str) -> list[str]:
    """The arguments that share a word with the message."""
    words = _stems(message) - COMMON
    return [name for name in names if _stems(name) & words]


def _logs_in(tool: dict[str, Any]) -> bool:
    return bool(_stems(tool["name"]) & {"login", "authent"})


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _stems(text: str) -> set[str]:
    return {_stem(word.lower()) for word in _WORDS.findall(text)}


def _verb(name: str) -> str:
    return _stem(_WORDS.findall(name)[0].lower()) if _WORDS.search(name) else ""


def _stem(word: str) -> str:
    for ending in ("icated", "ication", "icate", "ing", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word
