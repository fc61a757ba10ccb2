"""``space``: the ranges of a run's knobs, the same for every engineer, with a model or without."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor, inf, isfinite

from pydantic import BaseModel

from engineers.knobs import Knob, KnobError, find_knobs

Space = Mapping[str, tuple[float, float]]
"""Other ranges than the fields' own, by a knob's pattern or its name, which comes first: {"slices.*.hole_ratio": (0.1, 0.5)}."""


def checked_space(space: Space | None) -> dict[str, tuple[float, float]]:
    """The space as numbers; raises ``ValueError`` for a range that is upside down."""
    if not isinstance(space or {}, Mapping):
        raise ValueError(f"space is {space!r:.60}: give a mapping from knobs to (low, high)")
    ranges = {}
    for name, given in (space or {}).items():
        try:
            low, high = map(float, given)
        except (TypeError, ValueError):
            raise ValueError(f"space {name!r} is {given!r:.60}: give two numbers, (low, high)") from None
        ranges[name] = low, high
        if not isfinite(high - low):
            raise ValueError(f"space {name!r} is ({low:g}, {high:g}): give two finite numbers, (low, high)")
        if not low <= high:
            raise ValueError(f"space {name!r} is ({low:g}, {high:g}): give (low, high) with low ≤ high")
    return ranges


def raise_unless_knobs(space: Space, current: BaseModel) -> None:
    """Raise ``KnobError`` for a range without a value, or of a knob that the config does not have (a misspelt one would have no effect)."""
    knobs = find_knobs(current, ("*",)) if space else ()
    strangers = space.keys() - {name for knob in knobs for name in (knob.pattern, knob.name)}
    if strangers:
        there = ", ".join(dict.fromkeys(knob.pattern for knob in knobs if knob.bounds))
        raise KnobError(f"space {', '.join(sorted(strangers))} is not a knob of {type(current).__name__}: use {there}")
    for knob in knobs:
        range_of(knob, space)


def range_of(knob: Knob, space: Space) -> tuple[float, float] | None:
    """The range of the knob's draws: the run's space, the field's own, or else its bounds; None without any of them.

    For an integer, from the first to the last whole number inside. Raises ``KnobError`` if there is none inside, and for a range
    outside of the knob's bounds, which would be one value.
    """
    low_high = space.get(knob.name) or space.get(knob.pattern) or knob.extra.get("space") or knob.bounds
    if low_high is None:
        return None
    low, high = float(low_high[0]), float(low_high[1])
    least, greatest = knob.schema.get("minimum", -inf), knob.schema.get("maximum", inf)
    if high < least or low > greatest:
        raise KnobError(
            f"space ({low:g}, {high:g}) of {knob.name} is outside of its bounds, {least:g} to {greatest:g}: give a range inside"
        )
    if "number" in knob.types:
        return low, high
    if ceil(low) > floor(high):
        raise KnobError(f"space ({low:g}, {high:g}) of {knob.name} holds no whole number: give two whole numbers")
    return float(ceil(low)), float(floor(high))
