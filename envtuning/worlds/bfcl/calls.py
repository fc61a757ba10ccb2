"""``read_action``: reads an agent's text as calls or as the answer that ends the turn. Nothing in it is evaluated.

It reads two notations: the benchmark's own, ``[cd(folder='docs'), ls()]``, and JSON,
``[{"name": "cd", "arguments": {"folder": "docs"}}]``. A single call needs no list. Code fences, ``<tool_call>``
tags and thoughts in ``<think>`` tags may surround it. Arguments are literals.
"""

from __future__ import annotations

import ast
import json
import math
import re
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from keyword import iskeyword
from typing import Any

from engineers.model.replies import encodable, without_thoughts

MAX_CHARACTERS = 20_000  # of an action
MAX_CALLS = 100  # in an action
MAX_DEPTH = 60  # of lists and dicts in an argument, JSON's own brackets included
MAX_DIGITS = 4_000  # of a number; Python itself refuses to print more than 4,300

_TOO_DEEP = f"brackets are nested too deeply: at most {MAX_DEPTH}"
LITERALS = (str, int, float, bool, type(None))
_WARNINGS = threading.Lock()  # their filters are the process's: two threads would restore each other's


@dataclass(frozen=True)
class Call:
    """One call as the agent wrote it: positional arguments and named ones, all literals."""

    name: str
    positional: tuple[Any, ...] = ()
    named: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """In the benchmark's syntax: the official executor can run it."""
        arguments = [repr(value) for value in self.positional]
        arguments += [f"{name}={value!r}" for name, value in self.named.items()]
        return f"{self.name}({', '.join(arguments)})"

    def with_named(self, parameters: list[str]) -> Call:
        """The same call with its positional arguments named, as far as there are parameters for them."""
        given = dict(zip(parameters, self.positional))
        rest = self.positional[len(given) :]
        return Call(self.name, rest, given | self.named)


@dataclass(frozen=True)
class Calls:
    """Calls to be made, in this order."""

    calls: tuple[Call, ...]


@dataclass(frozen=True)
class EndOfTurn:
    """Words for the user: the turn is over."""

    text: str


@dataclass(frozen=True)
class Unreadable:
    """The text is meant as calls but cannot be read. The turn continues, and the agent gets the reason."""

    reason: str


Action = Calls | EndOfTurn | Unreadable


class CallError(ValueError):
    """The text is not a call; the message says what is wrong with it."""


_TAGGED = re.compile(r"<(tool_call|TOOLCALL)>(.*?)(?:</\1>|\Z)", re.DOTALL)
_FENCED = re.compile(r"\A```[a-zA-Z_]*\r?\n(.*?)```\Z", re.DOTALL)
_EMPTY = re.compile(r"\[\s*\]|\{\s*\}")
_CALL_LIKE = re.compile(r"\A[A-Za-z_][\w.]*\(")


def read_action(text: str) -> Action:
    """The agent's action. Never raises. Its time is proportional to the text's length, which is bounded."""
    if (refused := too_long(text)) is not None:
        return refused
    body = without_thoughts(text).strip()
    tagged = [match.group(2).strip() for match in _TAGGED.finditer(body)]
    if tagged:
        return _read(tagged)
    if (fenced := _FENCED.match(body)) is not None:
        body = fenced.group(1).strip()
    if body.startswith(("[", "{")) or _CALL_LIKE.match(body):
        return _read([body])
    return EndOfTurn(body)


def too_long(text: Any) -> Unreadable | None:
    """Why this text cannot be read in bounded time; None if it can."""
    if not isinstance(text, str):
        return Unreadable(f"an action is a text, not {type(text).__name__}")
    if len(text) > MAX_CHARACTERS:
        return Unreadable(f"the action has {len(text):,} characters: write at most {MAX_CHARACTERS:,}")
    return None


def read_json_calls(text: str) -> Calls | Unreadable:
    """Calls that are written as JSON; no other notation is read."""
    try:
        calls = _read_json(text)
    except CallError as error:
        return Unreadable(str(error))
    return _bounded(calls)


def read_call(text: str) -> Call:
    """One call in the benchmark's syntax. Raises ``CallError``."""
    calls = _read_python(text)
    if len(calls) != 1:
        raise CallError(f"{text!r:.60} holds {len(calls)} calls, not one")
    return calls[0]


def _read(parts: Sequence[str]) -> Action:
    """The calls of all parts. If a part holds no calls, the first such part is the action."""
    calls: list[Call] = []
    try:
        for part in parts:
            if _EMPTY.fullmatch(part):
                return EndOfTurn("")
            calls += _read_json(part) if re.match(r"\{|\[\s*\{", part) else _read_python(part)
    except CallError as error:
        return Unreadable(str(error))
    return _bounded(calls)


def _bounded(calls: Sequence[Call]) -> Calls | Unreadable:
    if len(calls) > MAX_CALLS:
        return Unreadable(f"more than {MAX_CALLS} calls in one action: make at most {MAX_CALLS}")
    return Calls(tuple(calls))


def _read_json(body: str) -> list[Call]:
    try:
        data = json.loads(body)
    except RecursionError:
        raise CallError(_TOO_DEEP) from None
    except ValueError as error:
        raise CallError(f"the action is not JSON: {error}") from None
    _raise_unless_literal(data)
    return [_call_of(entry) for entry in (data if isinstance(data, list) else [data])]


def _call_of(entry: Any) -> Call:
    """From the keys that models write: name or function; arguments, parameters or args; OpenAI's nested function."""
    wanted = 'write {"name": TOOL, "arguments": {…}}'
    if not isinstance(entry, dict):
        raise CallError(f"{entry!r:.60} is not a call: {wanted}")
    if isinstance(entry.get("function"), dict):
        entry = entry["function"]
    name = entry.get("name", entry.get("function"))
    arguments: Any = next((entry[key] for key in ("arguments", "parameters", "args") if key in entry), {})
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except RecursionError:
            raise CallError(_TOO_DEEP) from None
        except ValueError:
            raise CallError(f"the arguments of {name!r:.60} are a text that is not JSON: {wanted}") from None
        _raise_unless_literal(arguments)
    if not _is_name(name):
        raise CallError(f"{name!r:.60} names no tool: {wanted}")
    if not isinstance(arguments, dict):
        raise CallError(f"the arguments of {name} are {type(arguments).__name__}, not an object: {wanted}")
    for argument in arguments:
        if not _is_name(argument):
            raise CallError(f"{argument!r:.60} names no argument of {name}: write letters, digits and _")
    return Call(name, (), arguments)


def _is_name(text: Any) -> bool:
    """Whether this text is a name in a printed call. Only ASCII: Python normalises other letters, and a dict does not."""
    return isinstance(text, str) and text.isascii() and text.isidentifier() and not iskeyword(text)


def _read_python(body: str) -> list[Call]:
    try:
        with _WARNINGS, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in the agent's texts
            tree = ast.parse(body.strip(), mode="eval").body
    except SyntaxError as error:
        raise CallError(f"the calls cannot be read: {error.msg}; write [tool(argument=value), …]") from None
    except (ValueError, RecursionError, MemoryError):
        raise CallError("the calls cannot be read: write [tool(argument=value), …]") from None
    nodes = tree.elts if isinstance(tree, ast.List | ast.Tuple) else [tree]
    return [_call_of_node(node, body) for node in nodes]


def _call_of_node(node: ast.expr, body: str) -> Call:
    if not isinstance(node, ast.Call):
        raise CallError(f"{_source(node, body)} is not a call: write tool(argument=value)")
    if isinstance(node.func, ast.Name):
        name = node.func.id
    elif isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
        name = node.func.attr  # TradingBot.place_order(…): the class is not part of the tool's name
    else:
        raise CallError(f"{_source(node.func, body)} is not the name of a tool: write tool(argument=value)")
    named: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise CallError(f"{name}(**…): name each argument")
        if keyword.arg in named:
            raise CallError(f"{name} is given {keyword.arg} twice")
        named[keyword.arg] = _literal(keyword.value, body, f"{name}({keyword.arg}=…)")
    return Call(name, tuple(_literal(value, body, f"an argument of {name}") for value in node.args), named)


def _literal(node: ast.expr, body: str, what: str) -> Any:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise CallError(
            f"{what} is {_source(node, body)}, no literal: write a text in quotes, a number, True, False, None, a list or a dict"
        ) from None
    _raise_unless_literal(value)
    return value


def _source(node: ast.AST, body: str) -> str:
    return f"{ast.get_source_segment(body.strip(), node) or 'this':.60}"


def _raise_unless_literal(value: Any, depth: int = MAX_DEPTH) -> None:
    """Accepts what JSON can express, and tuples. Nesting is bounded, numbers are finite and printable, texts can be encoded."""
    if isinstance(value, dict | list | tuple):
        if depth == 0:
            raise CallError(_TOO_DEEP)
        for item in [*value, *value.values()] if isinstance(value, dict) else value:
            _raise_unless_literal(item, depth - 1)
    elif not isinstance(value, LITERALS):
        raise CallError(
            f"an argument is of type {type(value).__name__}: write texts, numbers, True, False, None, lists, dicts"
        )
    elif isinstance(value, int) and value.bit_length() > MAX_DIGITS * 3.33:
        raise CallError(f"a number of more than {MAX_DIGITS:,} digits: write a shorter one")
    elif isinstance(value, float) and not math.isfinite(value):
        raise CallError("a number that is not finite: write a finite one")
    elif isinstance(value, str) and value != encodable(value):
        raise CallError("a text with half a surrogate pair: write whole characters")


def as_reply(calls: Sequence[Call | str]) -> str:
    """Calls as an agent writes them, in the benchmark's syntax."""
    return f"[{', '.join(map(str, calls))}]"
