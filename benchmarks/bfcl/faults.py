"""The types of faults. Each has two variants: rules can be written against one and scored on the other."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from envtuning.worlds.bfcl.calls import Call
from envtuning.worlds.bfcl.documents import documented_values, is_id, parameters, required


@dataclass(frozen=True)
class Place:
    """A call of the plan, all its arguments named."""

    turn: int
    index: int
    call: Call
    document: dict[str, Any]


Variant = Callable[[Place, Sequence[dict[str, Any]], random.Random], Call | None]


class NotHere(Exception):
    """This variant cannot be put into this call."""


def _change(call: Call, name: str, value: Any) -> Call:
    return Call(call.name, (), call.named | {name: value})


def _without(call: Call, name: str) -> Call:
    return Call(call.name, (), {key: value for key, value in call.named.items() if key != name})


def _pick(names: Sequence[str], generator: random.Random) -> str:
    if not names:
        raise NotHere
    return generator.choice(list(names))


def _given(place: Place, wanted: Callable[[str, Any], bool]) -> list[str]:
    return [name for name, value in place.call.named.items() if wanted(name, value)]


def _missing(last: bool) -> Variant:
    def variant(place: Place, tools: Sequence[dict[str, Any]], generator: random.Random) -> Call:
        names = [name for name in required(place.document) if name in place.call.named]
        if not names:
            raise NotHere
        return _without(place.call, names[-1 if last else 0])

    return variant


def _renamed(place: Place, tools: Sequence[dict[str, Any]], generator: random.Random) -> Call:
    """An argument under a name that the tool does not have."""
    name = _pick(list(place.call.named), generator)
    other = name.replace("_", "") + "_value" if "_" not in name else "".join(part.title() for part in name.split("_"))
    return Call(place.call.name, (), {other if key == name else key: v for key, v in place.call.named.items()})


def _added(place: Place, tools: Sequence[dict[str, Any]], generator: random.Random) -> Call:
    """An argument that the tool does not have."""
    return _change(place.call, generator.choice(["verbose", "recursive", "format", "timeout"]), True)


def _listed(place: Place, generator: random.Random) -> tuple[str, Any, tuple[str, ...]]:
    schemas = parameters(place.document)
    names = _given(place, lambda name, value: name in schemas and len(documented_values(schemas[name])) > 1)
    name = _pick(names, generator)
    return name, place.call.named[name], documented_values(schemas[name])


def _other_spelling(place: Place, tools: Sequence[dict[str, Any]], generator: random.Random) -> Call:
    name, value, listed = _listed(place, generator)

    def spelt(word: Any) -> Any:
        return word.swapcase() if isinstance(word, str) else word

    wrong = [spelt(word) for word in value] if isinstance(value, list) else spelt(value)
    if wrong in listed:
        raise NotHere
    return _change(place.call, name, wrong)


def _no_such_value(place: Place, tools: Sequence[dict[str, Any]], generator: random.Random) -> Call:
    name, value, _ = _listed(place, generator)
    return _change(place.call, name, ["default"] if isinstance(value, list) else "default")


def _off_by_one(place: Place, tools: Sequence[dict[str, Any]], generator: random.Random) -> Call:
    name = _pick(_given(place, lambda name, value: is_id(name) and bool(str(value))), generator)
    value = place.call.named[name]
    if isinstance(value, int):
        return _change(place.call, name, value + 1)
    last = value[-1]
    return _change(
        place.call, name, value[:-1] + (str((int(last) + 1) % 10) if last.isascii() and last.isdigit() else "Q")
    )


def _name_for_id(place: Place, tools: Sequence[dict[str, Any]], generator: random.Random) -> Call:
    name = _pick(_given(place, lambda name, value: is_id(name)), generator)
    return _change(place.call, name, generator.choice(["latest", "my own", "the first one"]))


def _text_for_number(place: Place, tools: Sequence[dict[str, Any]], generator: random.Random) -> Call:
    def is_number(name: str, value: Any) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool)

    name = _pick(_given(place, is_number), generator)
    return _change(place.call, name, f"{place.call.named[name]} units")


def _list_for_one(place: Place, tools: Sequence[dict[str, Any]], generator: random.Random) -> Call:
    name = _pick(_given(place, lambda name, value: isinstance(value, str)), generator)
    return _change(place.call, name, [place.call.named[name]])


def _skipped(first: bool) -> Variant:
    """A step left out, so that the precondition of a later one is not met. A missing ``cd`` is a separate type."""

    def variant(place: Place, tools: Sequence[dict[str, Any]], generator: random.Random) -> None:
        if place.call.name == "cd" or (place.index == 0) != first:
            raise NotHere

    return variant


FILE_NAMES = ("file_name", "file_name1", "file_name2", "source", "destination", "dir_name")


def _path(prefix: str) -> Variant:
    def variant(place: Place, tools: Sequence[dict[str, Any]], generator: random.Random) -> Call:
        name = _pick(_given(place, lambda name, value: name in FILE_NAMES and isinstance(value, str)), generator)
        return _change(place.call, name, prefix + place.call.named[name])

    return variant


def _stayed(place: Place, tools: Sequence[dict[str, Any]], generator: random.Random) -> None:
    """The change of directory is forgotten."""
    if place.call.name != "cd":
        raise NotHere


def _elsewhere(place: Place, tools: Sequence[dict[str, Any]], generator: random.Random) -> Call:
    """The change of directory goes to a folder that is not there."""
    if place.call.name != "cd" or place.call.named.get("folder") in ("..", "/", None):
        raise NotHere
    return _change(place.call, "folder", f"{place.call.named['folder']}_old")


def _misspelt_tool(place: Place, tools: Sequence[dict[str, Any]], generator: random.Random) -> Call:
    name = place.call.name
    return Call(name.replace("_", "") + "Tool" if "_" in name else f"{name}_tool", (), place.call.named)


def _other_tool(place: Place, tools: Sequence[dict[str, Any]], generator: random.Random) -> Call:
    """Another tool that does not take these arguments."""
    given = set(place.call.named)
    names = [tool["name"] for tool in tools if tool["name"] != place.call.name and not given <= set(parameters(tool))]
    return Call(_pick(names, generator), (), place.call.named)


def _swapped(place: Place, tools: Sequence[dict[str, Any]], generator: random.Random) -> Call:
    """Two arguments' values exchanged."""
    names = list(place.call.named)
    if len(names) < 2:
        raise NotHere
    one, other = generator.sample(names, 2)
    return Call(place.call.name, (), place.call.named | {one: place.call.named[other], other: place.call.named[one]})


def _rotated(place: Place, tools: Sequence[dict[str, Any]], generator: random.Random) -> Call:
    """All arguments' values moved on by one."""
    names, values = list(place.call.named), list(place.call.named.values())
    if len(names) < 3:
        raise NotHere
    return Call(place.call.name, (), dict(zip(names, [*values[1:], values[0]])))


def _number_off(place: Place, tools: Sequence[dict[str, Any]], generator: random.Random) -> Call:
    """A number of the right type and the wrong size; most tools do not notice."""
    name = _pick(_given(place, lambda name, v: isinstance(v, int | float) and not isinstance(v, bool)), generator)
    return _change(place.call, name, place.call.named[name] + generator.choice([1, -1, 10, -1000]))


def _words_off(place: Place, tools: Sequence[dict[str, Any]], generator: random.Random) -> Call:
    """Words that the user did not say; most tools do not notice."""
    name = _pick(_given(place, lambda name, v: isinstance(v, str) and not is_id(name) and len(v) > 3), generator)
    return _change(place.call, name, place.call.named[name] + " draft")


VARIANTS: dict[str, Variant] = {
    "missing_argument/first": _missing(last=False),
    "missing_argument/last": _missing(last=True),
    "unexpected_argument/renamed": _renamed,
    "unexpected_argument/added": _added,
    "wrong_enumeration/other_spelling": _other_spelling,
    "wrong_enumeration/no_such_value": _no_such_value,
    "wrong_id/off_by_one": _off_by_one,
    "wrong_id/name_for_id": _name_for_id,
    "wrong_type/text_for_number": _text_for_number,
    "wrong_type/list_for_one": _list_for_one,
    "unmet_precondition/first_step": _skipped(first=True),
    "unmet_precondition/later_step": _skipped(first=False),
    "path_for_name/here": _path("./"),
    "path_for_name/folder": _path("files/"),
    "wrong_directory/stayed": _stayed,
    "wrong_directory/elsewhere": _elsewhere,
    "wrong_tool/misspelt": _misspelt_tool,
    "wrong_tool/other": _other_tool,
    "swapped_arguments/two": _swapped,
    "swapped_arguments/all": _rotated,
    "wrong_value/number": _number_off,
    "wrong_value/words": _words_off,
}
