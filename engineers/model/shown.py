"""How knobs and configs stand in a prompt: what a knob means and where it may go, and the part of a config that matters."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from engineers.knobs import Knob
from engineers.space import Space, range_of


def knob_docs(knobs: Sequence[Knob], space: Space, target: Mapping[str, Any]) -> list[str]:
    """A line per kind of knob: where, what it means, its bounds. The model's own descriptions are the documentation.

    The sensible ranges are the run's ``space``, where it has none the field's own, and reach as far as the target does.
    """
    kinds: dict[str, list[Knob]] = {}
    for knob in knobs:
        kinds.setdefault(knob.pattern, []).append(knob)
    aims = flat(target)
    return [
        f"{pattern}{_keys(same)}: {same[0].schema['description']} {_bounds(same[0])}{_sensible(same, space, aims)}."
        for pattern, same in kinds.items()
    ]


def _keys(same: Iterable[Knob]) -> str:
    names = [_key(knob) for knob in same]
    return f" (* is {', '.join(names)})" if any(names) else ""


def _key(knob: Knob) -> str:
    """What stands for the pattern's stars: '6' in slices.6.share."""
    return ".".join(key for key, part in zip(knob.path, knob.pattern.split("."), strict=True) if part == "*")


def _bounds(knob: Knob) -> str:
    schema = knob.schema
    options = [compact(value) for value in schema.get("enum", []) if value is not None]
    if options:
        said = f"One of {', '.join(options)}"
    elif knob.bounds:
        said = f"{'A number' if 'number' in knob.types else 'An integer'} from {schema['minimum']:g} to {schema['maximum']:g}"
    else:
        said = f"Type {' or '.join(sorted(knob.types - {'null'})) or 'mixed'}"
        said += f", at least {schema['minimum']:g}" if "minimum" in schema else ""
        said += f", at most {schema['maximum']:g}" if "maximum" in schema else ""
    return f"{said}, or null" if knob.nullable else said


def _sensible(same: Sequence[Knob], space: Space, aims: Mapping[str, Any]) -> str:
    """The ranges that say more than the bounds; once where all knobs of a kind have the same one."""
    ranges: dict[tuple[float, float], list[str]] = {}
    for knob in same:
        low_high = range_of(knob, space)
        if low_high is None or (low_high == knob.bounds and knob.extra.get("space") is None):
            continue
        aim = aims.get(knob.name)
        reached = [*low_high, aim] if isinstance(aim, int | float) else low_high
        ranges.setdefault((min(reached), max(reached)), []).append(_key(knob))
    if not ranges:
        return ""
    said = [
        f"{low:g} to {high:g}" + (f" for {', '.join(keys)}" if len(keys) < len(same) else "")
        for (low, high), keys in ranges.items()
    ]
    return f"; sensible are {'; '.join(said)}"


def only(config: Mapping[str, Any], paths: Iterable[tuple[str, ...]]) -> dict[str, Any]:
    """The part of a config at these paths; keys that it does not have are left out."""
    kept: dict[str, Any] = {}
    for path in paths:
        value: Any = config
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            place = kept
            for key in path[:-1]:
                place = place.setdefault(key, {})
            place[path[-1]] = value
    return kept


def flat(config: Mapping[str, Any], place: str = "") -> dict[str, Any]:
    """{"slices.6.share": 0.5}"""
    found: dict[str, Any] = {}
    for key, value in config.items():
        found |= flat(value, f"{place}{key}.") if isinstance(value, dict) else {f"{place}{key}": value}
    return found


def compact(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else value if isinstance(value, str) else compact_json(value)


def compact_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
