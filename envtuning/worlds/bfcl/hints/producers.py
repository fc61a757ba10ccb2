"""Finds the tool that a hint should name, from the tools' own documents: by what they return or take, or by the words in their names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Any

from envtuning.worlds.bfcl.calls import Call
from envtuning.worlds.bfcl.documents import parameters, required

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
COMMON = frozenset(
    [
        "a",
        "all",
        "an",
        "and",
        "are",
        "be",
        "been",
        "before",
        "by",
        "can",
        "cannot",
        "data",
        "during",
        "error",
        "execution",
        "for",
        "from",
        "get",
        "has",
        "have",
        "here",
        "id",
        "in",
        "info",
        "information",
        "invalid",
        "is",
        "it",
        "list",
        "must",
        "no",
        "not",
        "of",
        "on",
        "or",
        "set",
        "status",
        "the",
        "to",
        "user",
        "view",
        "when",
        "with",
        "your",
        "you",
    ]
)


def similar_tools(call: Call, tools: Sequence[dict[str, Any]], most: int = 2) -> list[str]:
    """Tools whose names look alike, the likeliest first; else tools that take exactly these arguments."""
    plain = {_plain(tool["name"]): tool["name"] for tool in tools}
    wanted = _plain(call.name)
    inside = [name for key, name in plain.items() if wanted.startswith(key) and len(wanted) - len(key) <= 4]
    alike = [plain[key] for key in difflib.get_close_matches(wanted, plain, n=most, cutoff=0.75)]
    found = list(dict.fromkeys([*sorted(inside, key=len, reverse=True), *alike]))[:most]
    return found or takers(call, tools, most)


def takers(call: Call, tools: Sequence[dict[str, Any]], most: int = 2) -> list[str]:
    """Other tools that take the given arguments and need no more."""
    given = set(call.named)
    if not given:
        return []
    fitting = [
        tool["name"]
        for tool in tools
        if tool["name"] != call.name and given <= set(parameters(tool)) and set(required(tool)) <= given
    ]
    return fitting[:most]


def producers(argument: str, tools: Sequence[dict[str, Any]], asker: str, most: int = 2) -> list[str]:
    """Tools that give out what this argument wants: they return something of its name, or are named after it."""
    wanted = _stems(argument) - COMMON
    found: list[tuple[int, str]] = []
    for tool in tools:
        if tool["name"] == asker or argument in required(tool):
            continue
        returned = tool.get("response", {}).get("properties", {})
        if argument in returned:
            found.append((0, tool["name"]))
        elif wanted and wanted <= _stems(tool["name"]) | _stems(" ".join(returned)):
            found.append((1, tool["name"]))
    return [name for _, name in sorted(found, key=lambda entry: entry[0])][:most]


def makers(message: str, tools: Sequence[dict[str, Any]], most: int = 2) -> list[str]:
    """Tools that make the kind of thing that a message does not find: book_flight for a booking, post_tweet for a tweet."""
    making = {
        "create",
        "post",
        "add",
        "book",
        "place",
        "register",
        "purchase",
        "send",
        "fund",
        "comment",
        "buy",
        "fill",
    }
    words = _stems(message) - COMMON
    return [tool["name"] for tool in tools if (stems := _stems(tool["name"])) & making and stems & words][:most]


def near_in_words(message: str, call: Call, tools: Sequence[dict[str, Any]], most: int = 3) -> list[str]:
    """Tools whose names share the most words with the message; where the message asks for a login, the tools that log in."""
    words = _stems(message) - COMMON - _stems(" ".join(map(str, call.named.values())))
    if words & {"authenticate", "log", "login", "authent"} or "token" in words:
        logins = [
            tool["name"]
            for tool in tools
            if _stems(tool["name"]) & {"login", "authent"} and "status" not in tool["name"]
        ]
        return logins[:most]
    scored = [
        (len((_stems(tool["name"]) - COMMON) & words), tool["name"]) for tool in tools if tool["name"] != call.name
    ]
    best = max((score for score, _ in scored), default=0)
    least = 2 if best >= 2 else 1
    return [name for score, name in sorted(scored, key=lambda entry: -entry[0]) if score >= least][:most]


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _stems(text: str) -> set[str]:
    return {_stem(word.lower()) for word in _WORDS.findall(text)}


def _stem(word: str) -> str:
    for ending in ("icated", "ication", "icate", "ing", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word
