"""A menu's texts: descriptions of its entries' configs, for engineers that choose and do not write."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from pydantic import BaseModel, ConfigDict

from engineers.knobs import dump, find_knobs
from engineers.model.answer_format import AnswerFormat
from engineers.model.shown import ShownConfigs
from engineers.roles import SliceKnobs, find_slices
from engineers.space import range_of
from envtuning.atlas.spec import UNIFORM, AtlasSpec
from envtuning.worlds.world import summary_of


class Words(BaseModel):
    """The texts of a node's menu."""

    model_config = ConfigDict(extra="forbid")

    entries: dict[str, str]  # what each trains on
    target: str  # with the common part of all entries, which a menu's config does not show


def words_of(spec: AtlasSpec, config: BaseModel, entries: Mapping[str, BaseModel]) -> Words:
    """Of a node that was trained on this config, by its entries."""
    rules = rules_of(entries)
    said = {name: "; ".join([*rules[name], described_as(spec, name, config)]) for name, config in entries.items()}
    return Words(entries=said, target=target_in_words(spec, config))


def described_as(spec: AtlasSpec, entry: str, config: BaseModel) -> str:
    """An entry's description, with its real numbers; for an entry that every stage draws again, its ranges."""
    return spread_over(config, spec) if spec.menu[entry] == UNIFORM else in_words(config, spec)


def in_words(config: BaseModel, spec: AtlasSpec) -> str:
    """Slices that differ only in their names are described together."""
    world = spec.plan.world
    together: dict[str, list[str]] = {}
    for line in summary_of(world.as_dealt(config), world.about):
        label, _, rest = line.partition(", ")
        together.setdefault(rest, []).append(label)
    return "; ".join(", ".join([" and ".join(labels), rest] if rest else labels) for rest, labels in together.items())


def spread_over(config: BaseModel, spec: AtlasSpec) -> str:
    """The slices in use, with the ranges of their numbers."""
    world, space = spec.plan.world, spec.run.engineer.options.get("space") or {}
    slices = [piece for piece in shared_slices(config) if piece.share is not None and piece.share.value]
    ranges: dict[str, list[float]] = {}
    for knob in (knob for piece in slices for knob in piece.difficulties):
        ranges.setdefault(knob.field, []).extend(range_of(knob, space) or (knob.value, knob.value))
    numbers = [f"{field.replace('_', ' ')} {min(ends):g} to {max(ends):g}" for field, ends in ranges.items()]
    names = ", ".join(world.about.label(piece.name) for piece in slices)
    return ", ".join([f"{names} in equal parts", *numbers]) + ", drawn anew for every stage"


def target_in_words(spec: AtlasSpec, config: BaseModel) -> str:
    """The target, with the values that engineers cannot change."""
    target = dump(spec.plan.target)
    fixed = ShownConfigs(AnswerFormat(config, spec.run.editable), target).fixed(target)
    return ". ".join(filter(None, [in_words(spec.plan.target, spec), f"Of all configs: {fixed}" if fixed else ""]))


def rules_of(entries: Mapping[str, BaseModel]) -> dict[str, list[str]]:
    """Differences between the entries besides their slices, by entry: 'num agents 3'."""
    data = {name: dump(config) for name, config in entries.items()}
    slices = {piece.share.path[0] for config in entries.values() for piece in shared_slices(config) if piece.share}
    fields = [field for field in next(iter(data.values())) if field not in slices]
    differ = [field for field in fields if any(one[field] != other[field] for one, other in pairwise(data.values()))]
    return {
        name: [f"{field.replace('_', ' ')} {said(values[field])}" for field in differ] for name, values in data.items()
    }


def shared_slices(config: BaseModel) -> list[SliceKnobs]:
    return [piece for piece in find_slices(find_knobs(config, ("*",))) if piece.share is not None]


def said(value: Any) -> str:
    """A field's value; of weights those that are drawn, with their parts where these differ."""
    if not isinstance(value, dict) or not all(isinstance(weight, int | float) for weight in value.values()):
        return str(value)
    drawn = {key: weight for key, weight in value.items() if weight > 0}
    if len(set(drawn.values())) <= 1:
        return " or ".join(map(str, drawn))
    return " or ".join(f"{key} ({weight / sum(drawn.values()):.0%})" for key, weight in drawn.items())
