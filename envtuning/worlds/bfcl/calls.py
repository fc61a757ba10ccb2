"""``read_action``: reads an agent's text as calls or as the answer that ends the turn. Nothing in it is evaluated.

Two ways of writing calls are read: the benchmark's own, ``[cd(folder='docs'), ls()]``, and JSON,
``[{"name": "cd", "arguments": {"folder": "docs"}}]``; a single call needs no list, and code fences, ``<tool_call>``
tags and thoughts in ``<think>`` tags may surround it. Arguments are literals.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

MAX_CHARACTERS = 20_000  # of an action
MAX_CALLS = 100  # in an action
MAX_DEPTH = 60  # of brackets
MAX_DIGITS = 4_000  # of a number; Python itself refuses to print more than 4,300

LITERALS = (str, int, float, bool, type(None))


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
    """The text is meant as calls but cannot be read; the turn continues, and the agent gets the reason."""

    reason: str


Action = Calls | EndOfTurn | Unreadable


class CallError(ValueError):
    """The text is not a call; the message says what is wrong with it."""


_THOUGHT = re.compile(r"<think>.*?(</think>|\Z)", re.DOTALL)
_TAGGED = re.compile(r"<(tool_call|TOOLCALL)>(.*?)(?:</\1>|\Z)", re.DOTALL)
_FENCED = re.compile(r"\A```[a-zA-Z_]*\n(.*?)\n?```\Z", re.DOTALL)
_BRACKET = re.compile(r"[()\[\]{}]")
_CALL_LIKE = re.compile(r"\A[A-Za-z_][\w.]*\(")


def read_action(text: str) -> Action:
    """The agent's action. Never raises; takes time in proportion to the text's length, which is bounded."""
    if not isinstance(text, str):
        return Unreadable(f"an action is a text, not {type(text).__name__}")
    if len(text) > MAX_CHARACTERS:
        return Unreadable(f"the action has {len(text):,} characters: write at most {MAX_CHARACTERS:,}")
    body = _THOUGHT.sub("", text).strip()
    tagged = [match.group(2).strip() for match in _TAGGED.finditer(body)]
    if tagged:
        return _join([_read(part) for part in tagged])
    if (fenced := _FENCED.match(body)) is not None:
        body = fenced.group(1).strip()
    if body.startswith(("[", "{")) or _CALL_LIKE.match(body):
        return _read(body)
    return EndOfTurn(body)


def read_call(text: str) -> Call:
    """One call in the benchmark's syntax. Raises ``CallError``."""
    calls = _read_python(text)
    if len(calls) != 1:
        raise CallError(f"{text!r:.60} holds {len(calls)} calls, not one")
    return calls[0]


def _join(actions: list[Action]) -> Action:
    calls: list[Call] = []
    for action in actions:
        if not isinstance(action, Calls):
            return action
        calls += action.calls
    return Calls(tuple(calls))


def _read(body: str) -> Action:
    if body in ("[]", "{}"):
        return EndOfTurn("")
    try:
        calls = _read_json(body) if body.startswith(("{", "[{")) or re.match(r"\[\s*\{", body) else _read_python(body)
        if len(calls) > MAX_CALLS:
            raise CallError(f"{len(calls)} calls in one action: make at most {MAX_CALLS}")
    except CallError as error:
        return Unreadable(str(error))
    return Calls(tuple(calls))


def _read_json(body: str) -> list[Call]:
    _raise_if_deep(body)
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise CallError(f"the action is no JSON: {error}") from None
    return [_call_of(entry) for entry in (data if isinstance(data, list) else [data])]


def _call_of(entry: Any) -> Call:
    """From the forms that models write: name or function; arguments, parameters or args; OpenAI's nested function."""
    wanted = 'write {"name": TOOL, "arguments": {…}}'
    if not isinstance(entry, dict):
        raise CallError(f"{entry!r:.60} is no call: {wanted}")
    if isinstance(entry.get("function"), dict):
        entry = entry["function"]
    name = entry.get("name", entry.get("function"))
    arguments: Any = next((entry[key] for key in ("arguments", "parameters", "args") if key in entry), {})
    if isinstance(arguments, str):
        _raise_if_deep(arguments)
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            raise CallError(f"the arguments of {name!r:.60} are a text that is no JSON: {wanted}") from None
    if not isinstance(name, str) or not name.isidentifier():
        raise CallError(f"{name!r:.60} names no tool: {wanted}")
    if not isinstance(arguments, dict):
        raise CallError(f"the arguments of {name} are {type(arguments).__name__}, not an object: {wanted}")
    for value in arguments.values():
        _raise_unless_literal(value)
    return Call(name, (), arguments)


def _read_python(body: str) -> list[Call]:
    _raise_if_deep(body)
    try:
        with warnings.catch_warnings():
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
        raise CallError(f"{_source(node, body)} is no call: write tool(argument=value)")
    if isinstance(node.func, ast.Name):
        name = node.func.id
    elif isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
        name = node.func.attr  # TradingBot.place_order(…): the class is no part of a tool's name
    else:
        raise CallError(f"{_source(node.func, body)} is no tool's name: write tool(argument=value)")
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


def _raise_unless_literal(value: Any) -> None:
    """Only what JSON can say, and tuples; numbers of a length that can be printed."""
    if isinstance(value, dict):
        for key in value:
            _raise_unless_literal(key)
        for item in value.values():
            _raise_unless_literal(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _raise_unless_literal(item)
    elif not isinstance(value, LITERALS):
        raise CallError(
            f"{value!r:.60} is of type {type(value).__name__}: write texts, numbers, True, False, None, lists, dicts"
        )
    elif isinstance(value, int) and value.bit_length() > MAX_DIGITS * 3.33:
        raise CallError(f"a number of more than {MAX_DIGITS:,} digits: write a shorter one")


def _raise_if_deep(body: str) -> None:
    """Bound the depth that the parsers below recurse to."""
    depth = deepest = 0
    for bracket in _BRACKET.findall(body):
        if bracket in "([{":
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth -= 1
    if deepest > MAX_DEPTH:
        raise CallError(f"brackets nested {deepest} deep: at most {MAX_DEPTH}")


def as_reply(calls: Sequence[Call | str]) -> str:
    """Calls as an agent writes them, in the benchmark's syntax."""
    return f"[{', '.join(map(str, calls))}]"
