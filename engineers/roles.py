"""Roles: which knobs of a config are shares of its slices and which make a slice harder.

A field may say so itself, ``Field(…, json_schema_extra={"role": "share"})`` or ``"difficulty"`` or ``"none"``. Otherwise
the field called ``share`` is the share, and every other number with two bounds in the same slice is a difficulty, harder
upwards. A slice is a group of knobs that has a share; its name is its key in the config, as in the report's results. A
config without any share is one slice, called ``WHOLE``, which holds all its difficulties.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from engineers.knobs import Knob, get

WHOLE = "all"  # the name of the one slice of a config without shares


@dataclass(frozen=True)
class SliceKnobs:
    """One slice's knobs by role."""

    name: str
    share: Knob | None  # None: the whole config is one slice
    difficulties: tuple[Knob, ...]


def find_slices(knobs: Iterable[Knob]) -> tuple[SliceKnobs, ...]:
    """The slices in natural order of their names ("9" before "10"); one slice, ``WHOLE``, where the config has no shares.

    Empty only where there is neither a share nor a difficulty.
    """
    knobs = tuple(knobs)
    groups: dict[tuple[str, ...], list[Knob]] = {}
    for knob in knobs:
        groups.setdefault(knob.group, []).append(knob)
    slices = []
    for group, members in groups.items():
        share = next((knob for knob in members if role_of(knob) == "share"), None)
        if share is not None and group:
            difficulties = tuple(knob for knob in members if role_of(knob) == "difficulty")
            slices.append(SliceKnobs(group[-1], share, difficulties))
    if not slices:
        difficulties = tuple(knob for knob in knobs if role_of(knob) == "difficulty")
        return (SliceKnobs(WHOLE, None, difficulties),) if difficulties else ()
    return tuple(sorted(slices, key=lambda piece: natural_key(piece.name)))


def role_of(knob: Knob) -> str:
    """``"share"``, ``"difficulty"`` or ``"none"``."""
    said = knob.extra.get("role")
    if said is not None:
        return str(said)
    if knob.field == "share" and knob.bounds:
        return "share"
    return "difficulty" if knob.bounds else "none"


def split_by_role(knobs: Iterable[Knob]) -> tuple[list[Knob], list[Knob]]:
    """The shares, and all other knobs."""
    shares, others = list[Knob](), list[Knob]()
    for knob in knobs:
        (shares if role_of(knob) == "share" else others).append(knob)
    return shares, others


def shares_of(data: dict[str, Any], slices: Iterable[SliceKnobs]) -> dict[str, float]:
    """Each slice's part of the data, summing to 1 (all zero if every share is 0), from a config's JSON."""
    raw = {piece.name: 1.0 if piece.share is None else float(get(data, piece.share.path) or 0.0) for piece in slices}
    total = sum(raw.values())
    return {name: weight / total if total > 0 else 0.0 for name, weight in raw.items()}


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Sorts numbers in names as numbers."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.findall(r"\d+|\D+", name)]
