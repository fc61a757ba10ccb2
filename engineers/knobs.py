"""``Knob``: one editable value of a config, with its bounds and meaning, read from the config model's own JSON Schema.

A knob path is dotted, and ``*`` stands for every key that the current config has: ``slices.*.share``. A path to a group
means everything in it: ``slices.6`` is all knobs of slice 6.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from engineers.shared.errors import UserError
from engineers.shared.sentences import in_sentences
from engineers.strict import branches, description, strict_schema

ConfigT = TypeVar("ConfigT", bound=BaseModel)

# what a field may say beside its schema
EXTRAS = ("role", "harder", "space", "order", "meanings")
DECIMALS = 4  # digits of a number that an engineer writes, unless its range is much narrower than 1


class KnobError(UserError, ValueError):
    """A path without a knob in this config, or values that do not make a config; the message lists the existing ones."""


@dataclass(frozen=True)
class Knob:
    """One editable value: its path, its allowed values, its current value."""

    path: tuple[str, ...]  # ("slices", "6", "share")
    pattern: str  # "slices.*.share": equal for the knobs that mean the same in different slices
    schema: dict[str, Any]  # strict JSON Schema of the value
    value: Any  # as JSON
    extra: dict[str, Any]  # from the field's json_schema_extra: {"role": "share", "space": [0.0, 0.5]}
    multiple_of: float | None = None
    above: float | None = None  # a minimum that the value itself may not have
    below: float | None = None  # a maximum that it may not have

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def field(self) -> str:
        return self.path[-1]

    @property
    def group(self) -> tuple[str, ...]:
        """The place that holds it: all knobs of one slice have one group."""
        return self.path[:-1]

    @property
    def types(self) -> frozenset[str]:
        named = self.schema.get("type", [])
        return frozenset([named] if isinstance(named, str) else named)

    @property
    def options(self) -> list[Any]:
        """The values of a choice, without null; empty if the knob may have other values, too."""
        branches = [one for one in self.schema.get("anyOf", [self.schema]) if one.get("type") != "null"]
        listed = [value for one in branches for value in one.get("enum", []) if value is not None]
        return listed if all("enum" in one for one in branches) else []

    @property
    def meanings(self) -> dict[Any, str]:
        """What the options of a menu stand for, where its field says so."""
        said = self.extra.get("meanings", {})
        return {option: said[option] for option in self.options if option in said}

    @property
    def nullable(self) -> bool:
        return "null" in self.types or {"type": "null"} in self.schema.get("anyOf", [])

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Least and greatest value of a number that has both; None for everything else."""
        if not self.types & {"number", "integer"} or not {"minimum", "maximum"} <= self.schema.keys():
            return None
        return float(self.schema["minimum"]), float(self.schema["maximum"])

    def fit(self, value: float, within: tuple[float, float] | None = None, exact: float | None = None) -> float | int:
        """The nearest value that the knob can take, rounded for a reader: a few digits of the range that it is turned ``within``.

        That is the knob's bounds unless another is given. A range's ends and the value ``exact`` are not rounded.
        """
        low, high = float(self.schema.get("minimum", -math.inf)), float(self.schema.get("maximum", math.inf))
        within = within or (low, high)
        nearest = self._rounded(min(max(value, low), high), low, high, (*within, exact), _decimals(*within))
        step = self.grain(within)
        if nearest == self.above:
            return nearest + step
        return nearest - step if nearest == self.below else nearest

    def grain(self, within: tuple[float, float]) -> float:
        """The distance between two neighbours of the values that ``fit`` gives."""
        return self.multiple_of or (10.0 ** -_decimals(*within) if "number" in self.types else 1)

    def _rounded(
        self, value: float, low: float, high: float, kept: tuple[float | None, ...], decimals: int
    ) -> float | int:
        if self.multiple_of:
            steps = round(value / self.multiple_of)
            steps += (steps * self.multiple_of < low) - (steps * self.multiple_of > high)
            value = without_noise(steps * self.multiple_of)
        if "number" not in self.types:
            return round(value)
        if self.multiple_of or value in (low, high, *kept):
            return value
        return min(max(round(value, decimals), low), high)


def without_noise(value: float) -> float:
    """The value without rounding errors of arithmetic: 0.3 for 3 · 0.1."""
    return float(f"{value:.12g}")


def _decimals(low: float, high: float) -> int:
    """The digits that distinguish values of a range: four, and more if the range is narrower than a tenth."""
    width = high - low
    return max(DECIMALS, DECIMALS - math.ceil(math.log10(width))) if 0 < width < math.inf else DECIMALS


def find_knobs(current: BaseModel, editable: Sequence[str] | None = None) -> tuple[Knob, ...]:
    """The knobs of ``editable``, in the order of the config; None takes the list of the config's class, or else all knobs.

    Raises ``KnobError`` for a path without a knob. A path of the class may be empty in this config: a map without keys yet.
    """
    if not isinstance(current, BaseModel):
        raise TypeError(
            f"the current config is a {type(current).__name__}, not a pydantic model: "
            "validate it first, e.g. LakeConfig.model_validate(report.config)"
        )
    own = editable is None
    if editable is None:
        editable = getattr(type(current), "editable", None) or ("*",)
    return _knobs_of(type(current), json.dumps(dump(current)), tuple(editable), own)


@lru_cache(maxsize=64)  # a question asks for the same knobs six times, and each walk takes a millisecond
def _knobs_of(kind: type[BaseModel], text: str, editable: tuple[str, ...], own: bool) -> tuple[Knob, ...]:
    root, data = _schema_of(kind), json.loads(text)
    found: dict[tuple[str, ...], Knob] = {}
    for dotted in editable:
        matches = list(_walk(root, root, data, (), (), dotted.split(".")))
        if not matches:
            known, there = _as_far_as_it_leads(data, dotted)
            if not own or there not in ({}, []):
                place = f"below {'.'.join(known)}" if known else "at the top"
                names = ", ".join(key for key, _ in _children(there) or ()) or "none"
                raise KnobError(f"{dotted!r} names no knob of {kind.__name__}: {place} there are {names}")
        for knob in matches:
            found.setdefault(knob.path, knob)
    order = {path: index for index, path in enumerate(_paths(data))}
    return tuple(sorted(found.values(), key=lambda knob: order[knob.path]))


def _as_far_as_it_leads(data: Any, dotted: str) -> tuple[list[str], Any]:
    """The part of a path that exists, and the data there."""
    known: list[str] = []
    for key in dotted.split("."):
        below = dict(_children(data) or ())
        found = next(iter(below), "*") if key == "*" else key
        if found not in below:
            break
        known.append(found)
        data = below[found]
    return known, data


@cache
def _schema_of(config_class: type[BaseModel]) -> dict[str, Any]:
    return config_class.model_json_schema()


def dump(config: BaseModel, *, warnings: bool = True) -> dict[str, Any]:
    """The config as JSON values: keys are strings, tuples are lists. ``warnings``: pydantic's, of values past its validators."""
    # Without computed fields, which are not input.
    return config.model_dump(mode="json", by_alias=True, round_trip=True, warnings=warnings)


def as_text(record: BaseModel, indent: int = 1) -> str:
    """JSON that its class reads back, as ``dump`` gives: a config's, or that of a record which holds configs."""
    return record.model_dump_json(indent=indent, by_alias=True, round_trip=True)


def nested(values: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    """JSON data that has these values at these paths, and nothing else."""
    found: dict[str, Any] = {}
    for (*way, last), value in values.items():
        place = found
        for key in way:
            place = place.setdefault(key, {})
        place[last] = value
    return found


def get(data: Any, path: Sequence[str]) -> Any:
    """The value at a path of JSON data."""
    for key in path:
        data = data[int(key)] if isinstance(data, list) else data[key]
    return data


def with_values(current: ConfigT, values: dict[tuple[str, ...], Any]) -> ConfigT:
    """The current config with other values at these paths, validated by its own class.

    Raises ``KnobError`` with one sentence per fault.
    """
    data = dump(current)
    for path, value in values.items():
        parent = get(data, path[:-1])
        parent[int(path[-1]) if isinstance(parent, list) else path[-1]] = value
    return validated(type(current), data)


def validated(config_class: type[ConfigT], data: Any) -> ConfigT:
    """The config that this JSON data describes, or a ``KnobError`` with one sentence per fault."""
    try:
        return config_class.model_validate_json(json.dumps(data))
    except ValidationError as error:
        raise KnobError(in_sentences(error)) from None


def changes(old: BaseModel, new: BaseModel) -> list[tuple[tuple[str, ...], Any, Any]]:
    """Every leaf that differs: (path, old, new), with None where one side has no such leaf."""
    before, after = dump(old), dump(new)
    paths = dict.fromkeys([*_paths(before), *_paths(after)])
    pairs = ((path, get_or_none(before, path), get_or_none(after, path)) for path in paths)
    return [(path, a, b) for path, a, b in pairs if a != b]


def leaves(data: Any) -> dict[str, Any]:
    """{"slices.6.share": 0.5}: every leaf of JSON data by its dotted path."""
    return {".".join(path): get(data, path) for path in _paths(data)}


def get_or_none(data: Any, path: Sequence[str]) -> Any:
    """The value at a path of JSON data; None if it does not exist."""
    try:
        return get(data, path)
    except (KeyError, IndexError, TypeError, ValueError):
        return None


def _paths(data: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every leaf in order; a list of plain values is one leaf."""
    children = _children(data)
    if children is None:
        yield path
    else:
        for key, child in children:
            yield from _paths(child, (*path, key))


def _children(data: Any) -> list[tuple[str, Any]] | None:
    if isinstance(data, dict) and data:
        return list(data.items())
    if isinstance(data, list) and any(isinstance(entry, dict | list) for entry in data):
        return [(str(index), entry) for index, entry in enumerate(data)]
    return None


def _walk(
    root: dict[str, Any],
    schema: dict[str, Any],
    data: Any,
    path: tuple[str, ...],
    pattern: tuple[str, ...],
    wanted: Sequence[str],
) -> Iterator[Knob]:
    """The knobs below ``schema`` and ``data`` that the rest of a dotted path names."""
    children = _children(data)
    if children is None:
        if not wanted or wanted == ["*"]:
            yield from _leaf_knob(root, schema, data, path, pattern)
        return
    for key, child in children:
        rest = _after(key, wanted)
        if rest is not None:
            below, is_field = _below(root, schema, data, key)
            yield from _walk(root, below, child, (*path, key), (*pattern, key if is_field else "*"), rest)


def _after(key: str, wanted: Sequence[str]) -> Sequence[str] | None:
    """The rest of a path that begins with this key, which may have dots of its own; None if it begins otherwise."""
    if not wanted or wanted[0] == "*":
        return wanted[1:]
    parts = key.split(".")
    return wanted[len(parts) :] if parts == list(wanted[: len(parts)]) else None


def _below(root: dict[str, Any], schema: dict[str, Any], data: Any, key: str) -> tuple[dict[str, Any], bool]:
    """The schema of a child, and whether it is a declared field (else: a key of a map or a place in a list)."""
    for branch in sorted(branches(root, schema), key=lambda branch: not _describes(branch, data)):
        if key in branch.get("properties", {}):
            return branch["properties"][key], True
        for container in (*branch.get("patternProperties", {}).values(), branch.get("additionalProperties")):
            if isinstance(container, dict):
                return container, False
        if key.isdecimal() and int(key) < len(branch.get("prefixItems", [])):
            return branch["prefixItems"][int(key)], False
        if isinstance(branch.get("items"), dict):
            return branch["items"], False
    return {}, True


def _describes(branch: dict[str, Any], data: Any) -> bool:
    """Whether the data is this alternative of a union, by its fields and its tag."""
    fields = branch.get("properties", {})
    if not isinstance(data, dict) or not data.keys() <= fields.keys():
        return False
    return all(data.get(name) == field["const"] for name, field in fields.items() if "const" in field)


def _leaf_knob(
    root: dict[str, Any], schema: dict[str, Any], value: Any, path: tuple[str, ...], pattern: tuple[str, ...]
) -> Iterator[Knob]:
    strict = strict_schema(root, schema)
    if strict is None or not path:
        return
    name, plain = ".".join(pattern), branches(root, schema)
    documented = {**strict, "description": description(schema, plain, path[-1])}
    extra = {key: item for branch in plain for key, item in branch.items() if key in EXTRAS}
    step, above, below = (
        next((branch[word] for branch in plain if word in branch), None)
        for word in ("multipleOf", "exclusiveMinimum", "exclusiveMaximum")
    )
    yield Knob(path, name, documented, value, extra, step, above, below)
