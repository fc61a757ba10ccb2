"""Roles: which knobs of a config are shares of its slices and which make a slice harder.

A field may say so itself, ``Field(…, json_schema_extra={"role": "share"})`` or ``"difficulty"`` or ``"none"``. Otherwise
the field called ``share`` is the share, and every other number with two bounds in the same slice is a difficulty, harder
upwards. A slice is a group of knobs that has a share; its name is its key in the config, as in the report's results.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from engineers.knobs import Knob, get


@dataclass(frozen=True)
class SliceKnobs:
    """One slice's knobs by role."""

    name: str
    share: Knob
    difficulties: tuple[Knob, ...]


def find_slices(knobs: Iterable[Knob]) -> tuple[SliceKnobs, ...]:
    """The slices in natural order of their names ("9" before "10"); empty where the config has no shares."""
    groups: dict[tuple[str, ...], list[Knob]] = {}
    for knob in knobs:
        groups.setdefault(knob.group, []).append(knob)
    slices = []
    for group, members in groups.items():
        share = next((knob for knob in members if role_of(knob) == "share"), None)
        if share is not None and group:
            difficulties = tuple(knob for knob in members if role_of(knob) == "difficulty")
            slices.append(SliceKnobs(group[-1], share, difficulties))
    return tuple(sorted(slices, key=lambda piece: natural_key(piece.name)))


def role_of(knob: Knob) -> str:
    """``"share"``, ``"difficulty"`` or ``"none"``."""
    said = knob.extra.get("role")
    if said is not None:
        return str(said)
    if knob.field == "share" and knob.bounds:
        return "share"
    return "difficulty" if knob.bounds else "none"


def shares_of(data: dict[str, Any], slices: Iterable[SliceKnobs]) -> dict[str, float]:
    """Each slice's part of the data, summing to 1 (all zero if no slice has a share), from a config's JSON."""
    raw = {piece.name: float(get(data, piece.share.path) or 0.0) for piece in slices}
    total = sum(raw.values())
    return {name: weight / total if total > 0 else 0.0 for name, weight in raw.items()}


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Sorts numbers in names as numbers."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.findall(r"\d+|\D+", name)]
