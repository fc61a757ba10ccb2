"""Roles: which knobs of a config are shares of its slices and which make a slice harder.

A field may say so itself, ``Field(…, json_schema_extra={"role": "share"})`` or ``"difficulty"`` or ``"none"``. Otherwise the
field called ``share`` is the share, and every other number with two bounds is a difficulty, harder upwards unless the field
says ``{"harder": "lower"}``. A slice is a group of knobs that has a share, with all that is below it; its name is its key in
the config, as in the report's results. A difficulty beside the slices holds for all of them. A config without any share is
one slice, called ``WHOLE``, which holds all its difficulties. Slices stand in an order from easy to hard where all their
keys are numbers, or where their shares say ``{"order": true}``.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from engineers.knobs import Knob, KnobError, dump, find_knobs, get_or_none

WHOLE = "all"  # the name of the one slice of a config without shares
HIGHER, LOWER = "higher", "lower"  # values of a difficulty, of which one is harder


@dataclass(frozen=True)
class SliceKnobs:
    """One slice's knobs by role."""

    name: str
    share: Knob | None  # None: the whole config is one slice
    difficulties: tuple[Knob, ...]


def find_slices(knobs: Iterable[Knob]) -> tuple[SliceKnobs, ...]:
    """The slices in natural order of their names ("9" before "10"); one slice, ``WHOLE``, where the config has no shares.

    Empty only without shares and difficulties. Raises ``KnobError`` if two slices have one name.
    """
    shares: dict[tuple[str, ...], Knob] = {}
    difficulties: dict[tuple[str, ...], list[Knob]] = {}
    knobs = tuple(knobs)
    for knob in knobs:
        if role_of(knob) == "share" and knob.group:
            shares.setdefault(knob.group, knob)
    for knob in knobs:
        if role_of(knob) == "difficulty":
            _raise_unless_direction(knob)
            difficulties.setdefault(_slice_around(knob, shares), []).append(knob)
    if not shares:
        return tuple(SliceKnobs(WHOLE, None, tuple(all_there_are)) for all_there_are in difficulties.values())
    _raise_unless_told_apart(shares)
    slices = [SliceKnobs(group[-1], share, tuple(difficulties.get(group, ()))) for group, share in shares.items()]
    return tuple(sorted(slices, key=lambda slice_: natural_key(slice_.name)))


def slices_in(config: BaseModel) -> tuple[SliceKnobs, ...]:
    """All slices of a config, as ``find_slices`` finds them."""
    return find_slices(find_knobs(config, ("*",)))


def are_ordered(slices: Sequence[SliceKnobs]) -> bool:
    """Whether an order from easy to hard is declared."""
    return all(piece.name.isdecimal() or (piece.share and piece.share.extra.get("order")) for piece in slices)


def with_beside(slices: Sequence[SliceKnobs], knobs: Iterable[Knob]) -> tuple[SliceKnobs, ...]:
    """The slices, and in one more entry without a share the difficulties that are in none of them."""
    inside = {knob.path for slice_ in slices for knob in slice_.difficulties}
    beside = tuple(knob for knob in knobs if role_of(knob) == "difficulty" and knob.path not in inside)
    return (*slices, SliceKnobs(WHOLE, None, beside)) if beside else tuple(slices)


def _slice_around(knob: Knob, groups: Container[tuple[str, ...]]) -> tuple[str, ...]:
    """The innermost of these groups that holds the knob, at any depth; () if no group does."""
    depths = range(len(knob.group), 0, -1)
    return next((knob.group[:depth] for depth in depths if knob.group[:depth] in groups), ())


def _raise_unless_told_apart(groups: Iterable[tuple[str, ...]]) -> None:
    named: dict[str, list[str]] = {}
    for group in groups:
        named.setdefault(group[-1], []).append(".".join(group))
    for name, places in named.items():
        if len(places) > 1:
            raise KnobError(
                f"{' and '.join(places[:3])} are slices with the same name, {name!r}: give every slice its own key in the config"
            )


def role_of(knob: Knob) -> str:
    """``"share"``, ``"difficulty"`` or ``"none"``."""
    role = knob.extra.get("role")
    if role is not None:
        return str(role)
    if knob.field == "share" and knob.bounds:
        return "share"
    return "difficulty" if knob.bounds else "none"


def _raise_unless_direction(knob: Knob) -> None:
    said = knob.extra.get("harder", HIGHER)
    if said not in (HIGHER, LOWER):
        raise KnobError(f"{knob.name}: harder={said!r}: give {HIGHER!r} or {LOWER!r}")


def easy_to_hard(knob: Knob, bounds: tuple[float, float]) -> tuple[float, float]:
    """The ends of a difficulty's range, the easy one first."""
    return (bounds[1], bounds[0]) if knob.extra.get("harder") == LOWER else bounds


def split_by_role(knobs: Iterable[Knob]) -> tuple[list[Knob], list[Knob]]:
    """The shares, and all other knobs."""
    shares, others = list[Knob](), list[Knob]()
    for knob in knobs:
        (shares if role_of(knob) == "share" else others).append(knob)
    return shares, others


def shares_of(data: Mapping[str, Any], slices: Iterable[SliceKnobs]) -> dict[str, float]:
    """Each slice's part of the data, summing to 1, from a config's JSON; a slice that it lacks has none. All zero if every share is 0."""
    raw = {
        slice_.name: 1.0 if slice_.share is None else float(get_or_none(data, slice_.share.path) or 0.0)
        for slice_ in slices
    }
    total = sum(raw.values())
    return {name: weight / total if total > 0 else 0.0 for name, weight in raw.items()}


def shares_in(config: BaseModel) -> dict[str, float]:
    """Each slice's part of the data in a config, summing to 1. All zero if every share is 0."""
    return shares_of(dump(config), slices_in(config))


def share_of(knob: Knob, part: float) -> float | int:
    """A part of the data as a value of the share; a share in whole numbers counts up to its upper bound, else to a hundred."""
    if "number" in knob.types:
        return knob.fit(part)
    return knob.fit(part * (knob.bounds[1] if knob.bounds else 100))


def some_share_of(knob: Knob, part: float) -> float | int:
    """As ``share_of``, but no part above 0 is rounded to nothing: a coarse share has at least one step."""
    step = knob.multiple_of or (0 if "number" in knob.types else 1)
    share = share_of(knob, part)
    return knob.fit(step) if share < step and part > 0 else share


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Sorts numbers in names as numbers."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.findall(r"\d+|\D+", name)]
