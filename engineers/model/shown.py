"""Texts of knobs and configs in a prompt: a knob's meaning and range, and the relevant part of a config."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from engineers.knobs import Knob, find_knobs, get_or_none, leaves, nested
from engineers.model.answer_format import AnswerFormat
from engineers.report import StageRecord
from engineers.roles import find_slices
from engineers.shared.counts import in_words
from engineers.space import Space, range_of


def knob_docs(knobs: Sequence[Knob], space: Space, target: Mapping[str, Any]) -> list[str]:
    """A line per kind of knob: path, meaning, bounds. The texts are the descriptions in the config model.

    The sensible ranges are the run's ``space`` or else the field's own, extended to the target's values.
    """
    kinds: dict[str, list[Knob]] = {}
    for knob in knobs:
        # Where a config has a field for each slice, alike knobs of these slices are one kind as well.
        alike = f"{knob.path[:-2]} {knob.field} {compact_json(knob.schema)}"
        kinds.setdefault(knob.pattern if "*" in knob.pattern else alike, []).append(knob)
    aims = leaves(target)
    return [
        f"{_pattern(same)}{_keys(same)}: {same[0].schema['description']} {_bounds(same[0])}{_sensible(same, space, aims)}."
        f"{_meanings(same[0])}"
        for same in kinds.values()
    ]


def _pattern(same: Sequence[Knob]) -> str:
    return ".".join((*same[0].path[:-2], "*", same[0].field)) if _are_merged(same) else same[0].pattern


def _are_merged(same: Sequence[Knob]) -> bool:
    return len(same) > 1 and "*" not in same[0].pattern


def _meanings(knob: Knob) -> str:
    """The meaning of each option of a choice, one line each, if its field has meanings."""
    return "".join(f"\n  - {compact(option)}: {said}" for option, said in knob.meanings.items())


def _keys(same: Sequence[Knob]) -> str:
    names = [knob.path[-2] for knob in same] if _are_merged(same) else [_key(knob) for knob in same]
    return f" (* is {', '.join(names)})" if any(names) else ""


def _key(knob: Knob) -> str:
    """The keys that the pattern's stars stand for: '6' in slices.6.share."""
    return ".".join(key for key, part in zip(knob.path, knob.pattern.split("."), strict=True) if part == "*")


def _bounds(knob: Knob) -> str:
    schema = knob.schema
    if knob.options:
        words = f"One of {', '.join(map(compact, knob.options))}"
    elif knob.bounds:
        words = f"{'A number' if 'number' in knob.types else 'An integer'} from {schema['minimum']:g} to {schema['maximum']:g}"
    else:
        words = f"Type {' or '.join(sorted(knob.types - {'null'})) or 'mixed'}"
        words += f", at least {schema['minimum']:g}" if "minimum" in schema else ""
        words += f", at most {schema['maximum']:g}" if "maximum" in schema else ""
    return f"{words}, or null" if knob.nullable else words


def _sensible(same: Sequence[Knob], space: Space, aims: Mapping[str, Any]) -> str:
    """The ranges that say more than the bounds; written once if all knobs of a kind share it."""
    ranges: dict[tuple[float, float], list[str]] = {}
    for knob in same:
        low_high = range_of(knob, space)
        if low_high is None or (low_high == knob.bounds and knob.extra.get("space") is None):
            continue
        aim = aims.get(knob.name)
        reached = [*low_high, aim] if isinstance(aim, int | float) else low_high
        ranges.setdefault((min(reached), max(reached)), []).append(knob.path[-2] if _are_merged(same) else _key(knob))
    if not ranges:
        return ""
    words = [
        f"{low:g} to {high:g}" + (f" for {', '.join(keys)}" if len(keys) < len(same) else "")
        for (low, high), keys in ranges.items()
    ]
    return f"; sensible are {'; '.join(words)}"


class ShownConfigs:
    """The configs of a run in a prompt about the current one: the editable part, the fixed part, and the changes."""

    def __init__(self, answer_format: AnswerFormat[Any], trained_on: Mapping[str, Any]) -> None:
        knobs = find_knobs(answer_format.current, ("*",))
        self.trained_on = trained_on
        self.paths = [knob.path for knob in answer_format.knobs]
        self.slices = [(slice_, slice_.share) for slice_ in find_slices(knobs) if slice_.share is not None]
        self.meanings = {knob.name: str(knob.schema["description"]).rstrip(".") for knob in knobs}

    def editable(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The part that an answer may write; keys that the config does not have are left out."""
        values = {path: get_or_none(config, path) for path in self.paths}
        return nested({path: value for path, value in values.items() if value is not None})

    def in_use(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The config without the slices that have no share."""
        return _without(config, self._off(config))

    def whole(self, record: StageRecord) -> str:
        """An earlier config, switched-off slices and all."""
        return compact_json(self.editable(record.config))

    def since(self, record: StageRecord, before: StageRecord | None, target: Mapping[str, Any] | None = None) -> str:
        """An earlier config without switched-off slices; after another one, only the differences. The target's own are not told again."""
        if before is None and target and self.editable(record.config) == self.editable(target):
            return "as in the target"
        if before is None:
            return compact_json(self.editable(self.in_use(record.config)))
        turned = self._turned(before.config, record.config)
        return f"since stage {before.stage} {turned}" if turned else f"as in stage {before.stage}"

    def _turned(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
        """The knobs that have another value and matter for what is drawn."""
        shares = {share.path for _, share in self.slices}
        was_off, is_off = self._off(before), self._off(after)
        turned = []
        for path in self.paths:
            old, new = get_or_none(before, path), get_or_none(after, path)
            name, is_share = ".".join(path), path in shares
            if path[:-1] in is_off and not is_share:
                continue  # nothing is drawn from it
            if path[:-1] in was_off and not is_share:
                turned.append(f"{name} {compact(new)}")  # never told before
            elif old != new:
                turned.append(f"{name} {compact(old)} → {compact(new)}")
        return ", ".join(turned)

    def fixed(self, target: Mapping[str, Any]) -> str:
        """The target's other values, written once if its slices agree; beside them training's values, if they differ."""
        editable, here = {".".join(path) for path in self.paths}, leaves(self.in_use(self.trained_on))
        texts_of: dict[str, dict[str, str]] = {}
        for name, value in leaves(self.in_use(target)).items():
            if name not in editable:
                text = compact(value) if value is not None else f"null ({self.meanings.get(name, 'not set')})"
                other = f" (training has {compact(here[name])})" if here.get(name, value) != value else ""
                texts_of.setdefault(self._starred(name), {})[name] = f"{text:.200}{other}"
        return ", ".join(
            f"{name} {text}"
            for pattern, texts in texts_of.items()
            for name, text in (texts if len(set(texts.values())) > 1 else {pattern: next(iter(texts.values()))}).items()
        )

    def asked(self) -> dict[str, dict[str, float]]:
        """The requested training distribution: per slice its part of the data, and its numbers under their fields' names."""
        shares = self.weights(self.trained_on)
        total = sum(shares.values()) or 1.0
        numbers = {
            slice_.name: {knob.field: get_or_none(self.trained_on, knob.path) for knob in slice_.difficulties}
            for slice_, _ in self.slices
        }
        return {name: numbers[name] | {"share": weight / total} for name, weight in shares.items()}

    def weights(self, config: Mapping[str, Any]) -> dict[str, float]:
        """The share of each slice in any config of the run, as it stands there."""
        return {slice_.name: float(get_or_none(config, share.path) or 0.0) for slice_, share in self.slices}

    def _off(self, config: Mapping[str, Any]) -> set[tuple[str, ...]]:
        return {share.group for _, share in self.slices if get_or_none(config, share.path) == 0}

    def _starred(self, name: str) -> str:
        for _, share in self.slices:
            group = ".".join(share.group)
            if name.startswith(f"{group}."):
                return ".".join([*share.group[:-1], "*", name[len(group) + 1 :]])
        return name


def split_stats(
    stats: Mapping[str, Mapping[str, float]], asked: Mapping[str, Mapping[str, float]]
) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """The values that differ between slices or were requested, and the values that all slices in use share."""
    used = {name: row for name, row in stats.items() if asked.get(name, {}).get("share") != 0}
    first = next(iter(used.values()), {})
    alike = {
        field: value
        for field, value in first.items()
        if len(used) > 1
        and all(row.get(field) == value for row in used.values())
        and all(asked.get(name, {}).get(field) is None for name in used)
    }
    return {
        name: {field: value for field, value in row.items() if field not in alike} for name, row in stats.items()
    }, alike


def drawn(stats: Mapping[str, float], asked: Mapping[str, float]) -> str:
    """'hole ratio 0.306 (asked 0.31), distance 4.1'"""
    return ", ".join(
        f"{in_words(name)} {compact(value)}" + (f" (asked {asked[name]:.3g})" if asked.get(name) is not None else "")
        for name, value in stats.items()
    )


def _without(config: Mapping[str, Any], groups: set[tuple[str, ...]], place: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        key: _without(value, groups, (*place, key)) if isinstance(value, Mapping) else value
        for key, value in config.items()
        if (*place, key) not in groups
    }


def compact(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else value if isinstance(value, str) else compact_json(value)


def compact_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
