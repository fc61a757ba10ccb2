"""What a menu says of its entries: the texts that stand for configs where an engineer chooses and does not write."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from pydantic import BaseModel

from engineers.knobs import dump, find_knobs
from engineers.roles import SliceKnobs, find_slices
from envtuning.atlas.spec import UNIFORM, AtlasSpec
from envtuning.worlds.world import summary_of


def legend_of(spec: AtlasSpec, entries: Mapping[str, BaseModel]) -> dict[str, str]:
    """What each entry of one node trains on, in words."""
    about, rules = spec.plan.world.about, rules_of(entries)
    anew = {name: " (drawn anew for every stage)" for name, kind in spec.menu.items() if kind == UNIFORM}
    return {
        name: "; ".join([*rules[name], *summary_of(config, about)]) + anew.get(name, "")
        for name, config in entries.items()
    }


def rules_of(entries: Mapping[str, BaseModel]) -> dict[str, list[str]]:
    """What the entries differ in besides their slices, by entry: 'num agents 3'."""
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
