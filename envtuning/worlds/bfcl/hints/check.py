"""``refusals``: checks written hints before a stage is trained with them; each reason to refuse is a sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from envtuning.worlds.bfcl.hints.rules import MAX_HINT
from envtuning.worlds.bfcl.hints.written import is_template
from envtuning.worlds.bfcl.package import SPLITS, TOOL_CLASSES, Package
from envtuning.worlds.bfcl.tasks import documents, load_tasks

MAX_HINTS = 100
_WORD = re.compile(r"[\w@#$.\-]*\w")
_TELLING = re.compile(r"\d{3}|\d.*[A-Za-z]|[A-Za-z].*\d|[A-Za-z][._@][A-Za-z]|\A[A-Z]{3,}\Z|\A[@#]")


def refusals(package: Package, hints: Mapping[str, str]) -> list[str]:
    """Why these hints must not be used in training; empty if they may be.

    The key of a hint is an error template of a known tool. A hint has a bounded length and holds no token of a ground truth.
    """
    if len(hints) > MAX_HINTS:
        return [f"{len(hints)} hints: write at most {MAX_HINTS}"]
    tools = tool_names(package)
    found = []
    for key, hint in hints.items():
        tool = key.partition(": ")[0]
        if tool not in tools:
            found.append(
                f"hints[{key!r:.60}]: {tool!r:.40} is not a tool; a key is 'tool: message' with values blanked as {{}}"
            )
        elif not is_template(key):
            found.append(
                f"hints[{key!r:.60}] holds a value: blank values as {{}}, e.g. 'cancel_order: Order with ID {{}} not found.'"
            )
        if len(hint) > MAX_HINT:
            found.append(f"hints[{key!r:.60}] has {len(hint)} characters: write at most {MAX_HINT}")
        if leaked := sorted(telling_words(hint) & ground_truth_tokens(package)):
            found.append(
                f"hints[{key!r:.60}] gives away {', '.join(leaked[:3])}, of a ground truth: say where to look instead"
            )
    return found


@lru_cache(maxsize=2)
def ground_truth_tokens(package: Package) -> frozenset[str]:
    """Words of ground-truth arguments that give away a value, in lower case: names of files, ids, symbols, dates, handles, long numbers.

    A word gives away a value if it has three digits in a row, has both letters and digits, has a dot, underscore or @ between
    letters, begins with @ or #, or is all capitals. Words in a tool's document are not secret.
    """
    told: set[str] = set()
    for split in SPLITS:
        for task in load_tasks(package, split):
            for call in (call for turn in task.plan for call in turn):
                for value in (*call.positional, *call.named.values()):
                    told |= telling_words(str(value))
    public = " ".join(str(tool) for name in TOOL_CLASSES for tool in documents(package, name))
    return frozenset(told - {word.lower() for word in _WORD.findall(public)})


def telling_words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text) if _TELLING.search(word)}


@lru_cache(maxsize=2)
def tool_names(package: Package) -> frozenset[str]:
    return frozenset(tool["name"] for name in TOOL_CLASSES for tool in documents(package, name))
