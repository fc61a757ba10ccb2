"""Read a model's reply: remove thoughts and fences, find the JSON object. Nothing is executed or repaired.

Time is bounded: replies above a length are refused without reading, and the search for an object has a work budget.
"""

from __future__ import annotations

import json
import re
from typing import Any

MAX_CHARACTERS = 1_000_000
MAX_WORK = 10 * MAX_CHARACTERS  # characters read while looking for objects, repeated reads included
OPENING_WORK = 1_000  # least cost of trying one opening

_THOUGHT_TAG = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.IGNORECASE)


class ReplyError(ValueError):
    """A reply without a valid answer. The message, ``where`` and ``why`` it failed, is sent back to the model."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")
        self.where, self.why = where, why


def parse_reply(text: str) -> dict[str, Any]:
    """The last JSON object in a reply that has ``changes``; else the last, if none is broken. Raises only ``ReplyError``.

    It takes the last one, because models write drafts, the schema or the current config before their answer.
    """
    if len(text) > MAX_CHARACTERS:
        raise ReplyError(
            "reply", f"{len(text)} characters, at most {MAX_CHARACTERS} are read: answer with the JSON alone"
        )
    answer = without_thoughts(text)
    if not answer.strip():
        empty = "empty" if not text.strip() else "nothing but thoughts: they did not end before the reply did"
        raise ReplyError("reply", f"{empty}; answer with one JSON object")
    objects, fault = _objects(answer)
    fitting = [found for found in objects if "changes" in found]
    if fitting:
        return fitting[-1]
    if fault or not objects:  # text inside a broken object is not an answer
        raise fault or ReplyError("reply", "no JSON object in it: answer with one, from { to }")
    return objects[-1]


def encodable(text: str) -> str:
    """The text with question marks for lone surrogates, which JSON can smuggle in and no file or request can carry."""
    return text.encode("utf-8", "replace").decode("utf-8")


def without_thoughts(text: str) -> str:
    """The text outside <think>…</think>; a lone closing tag ends a thought that the prompt opened."""
    outside: list[str] = []
    start, thinking = 0, False
    for tag in _THOUGHT_TAG.finditer(text):
        closes = tag.group(1) == "/"
        if closes and not thinking:
            outside.clear()
        elif not closes and not thinking:
            outside.append(text[start : tag.start()])
        thinking = not closes
        start = tag.end()
    return "".join(outside if thinking else [*outside, text[start:]])


def _objects(text: str) -> tuple[list[dict[str, Any]], ReplyError | None]:
    """The outermost JSON objects, and the fault of the first opening that is not one."""
    found: list[dict[str, Any]] = []
    fault: ReplyError | None = None
    work, at = 0, text.find("{")
    while at >= 0 and work < MAX_WORK:
        start, why = at, None
        try:
            value, at = _DECODER.raw_decode(text, start)
            found.append(value)
        except json.JSONDecodeError as error:
            why = ReplyError(f"line {error.lineno}, column {error.colno}", f"invalid JSON, {error.msg}")
            work += error.pos - start
        except RecursionError:
            why = ReplyError("reply", "objects are nested too deeply: answer in the shape that was asked for")
            work += 500 * OPENING_WORK  # the next openings will be too deep as well
        except ReplyError as error:
            why = error
            work += len(text) - start
        except ValueError:  # Python refuses integers with thousands of digits
            why = ReplyError("reply", "a number with thousands of digits: give a short one")
            work += len(text) - start
        if why is not None:
            fault, at = fault or why, start + 1
        work += OPENING_WORK
        at = text.find("{", at)
    return found, fault


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ReplyError("reply", f"the key {twice!r:.60} appears twice in one object: write it once")
    return unique


def _no_constant(name: str) -> float:
    raise ReplyError("reply", f"{name} is not a JSON number: give a finite one")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)
