"""``Way``: the straight line from the current config to the target; every step of an engineer is along it.

All difficulties move together, each by the same fraction of its remaining distance. Shares move along the slices' order by
optimal transport: the data is a distribution over the ordered slices, and each part of it moves the same fraction of the way
to its place in the target's distribution. So data that moves from the smallest slice to the largest passes through those
between. A slice outside of all these ways gets no data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engineers.knobs import Knob, get_or_none
from engineers.plain.base import Design, PlainEngineer
from engineers.roles import SliceKnobs, easy_to_hard, find_slices, share_of, shares_of, with_beside

Range = Callable[[Knob], tuple[float, float] | None]

LITTLE = 0.01  # of the way from the easy end of a knob's range to the target


class Way:
    """From the current config's slices towards the target's; without a target, towards the far end of every range."""

    def __init__(
        self,
        slices: Sequence[SliceKnobs],
        current: Mapping[str, Any],
        target: Mapping[str, Any],
        range_of: Range,
        *,
        goal: str = "the target",
    ) -> None:
        self.slices, self.target, self.range_of = slices, target, range_of
        self.goal = goal  # the target's name in reasons
        self.shares = shares_of(dict(current), slices)
        weights = {slice_.name: self._weight_in_target(slice_) for slice_ in slices}
        total = sum(weights.values())
        self.wanted = {name: weight / total for name, weight in weights.items()} if total > 0 else None

    @property
    def is_known(self) -> bool:
        """Whether the report names the target, in terms of this config."""
        return self.wanted is not None

    @property
    def weights(self) -> dict[str, float]:
        """The weights of all slices in the target, which sum to 1; without a target, even ones."""
        return self.wanted or {slice_.name: 1 / len(self.slices) for slice_ in self.slices}

    @property
    def aims(self) -> list[str]:
        """The slices that the target has; without a target, all."""
        return [name for name, weight in self.weights.items() if weight > 0]

    def turn_shares(self, design: Design, wanted: Mapping[str, float], fraction: float, why: str) -> None:
        """Move the data that fraction of the way to the wanted shares (weights by slice name); a negative fraction, to the first slice."""
        if fraction < 0:
            wanted, fraction = {self.slices[0].name: 1.0}, -fraction
        names = [slice_.name for slice_ in self.slices]
        total = sum(wanted.get(name, 0.0) for name in names)
        if total <= 0:
            return
        goal = [wanted.get(name, 0.0) / total for name in names]
        now = [self.shares[name] for name in names]
        start = now if sum(now) > 0 else goal
        if now == goal and 1.0 in goal:
            why = f"all of the data is in {names[goal.index(1.0)]} already"
        for slice_, share in zip(self.slices, transported(start, goal, fraction), strict=True):
            if slice_.share is not None:
                design.turn(slice_.share, share_of(slice_.share, share), why)

    def turn_dials(self, design: Design, slice_: SliceKnobs, fraction: float, why: str) -> None:
        """Move the slice's difficulties that fraction of the way to the target's; a negative fraction eases them instead.

        The range in which they move reaches as far as the target does, so that no engineer that knows the target moves away from it.
        """
        for knob in slice_.difficulties:
            bounds = self.range_of(knob)
            if bounds is None:
                continue
            aim = self.aim_of(slice_, knob, bounds)
            if aim is None and knob.value is None:
                continue  # eased, it would be shut in training alone, and no later step would open it again
            if aim is not None:
                bounds = (min(bounds[0], aim), max(bounds[1], aim))
            end = aim if fraction >= 0 else self._easy_end(knob, aim, bounds)
            if end is None:
                continue  # the target leaves it open: so do we
            start = easy_to_hard(knob, bounds)[0] if knob.value is None and self.is_known else knob.value
            if start is not None:
                least = knob.grain(bounds) if _goes_in_steps(knob) else 0.0
                reached, told = _step(start, end, abs(fraction), least), why
                if fraction > 0 and 0 < abs(end - reached) <= self._little(knob, end, bounds):
                    reached, told = end, f"{why}, rounded up to all of it"
                if knob.value == end:
                    told = f"{self._end_in_words if fraction >= 0 else 'as easy as it can be'} already"
                design.turn(knob, knob.fit(reached, bounds, exact=end), told)

    @property
    def _end_in_words(self) -> str:
        return f"as in {self.goal}" if self.is_known else "at the hard end"

    def _little(self, knob: Knob, aim: float, bounds: tuple[float, float]) -> float:
        """A step that would leave no more than this goes all the way: halves of what is left would never end. In steps they do."""
        if _goes_in_steps(knob):
            return 0.0
        return max(LITTLE * abs(aim - self._easy_end(knob, aim, bounds)), knob.grain(bounds))

    def _easy_end(self, knob: Knob, aim: float | None, bounds: tuple[float, float]) -> float:
        """The easy end of the range, unless the knob is harder than in the target: then the way starts at the hard end."""
        easy, hard = easy_to_hard(knob, bounds)
        begins_hard = (
            self.is_known and aim is not None and knob.value is not None and (knob.value - aim) * (hard - easy) > 0
        )
        return hard if begins_hard else easy

    def aim_of(self, slice_: SliceKnobs, knob: Knob, bounds: tuple[float, float]) -> float | None:
        """The target's value of this knob: in the slice itself, or else in the nearest slice of the target."""
        if self.wanted is None:
            return easy_to_hard(knob, bounds)[1]
        path = knob.path
        if slice_.share is not None:
            there = self._nearest_in_target(slice_).share
            assert there is not None, "slices beside a slice have shares"
            path = (*there.group, *path[len(slice_.share.group) :])
        value = get_or_none(self.target, path)
        return None if value is None else float(value)

    def _nearest_in_target(self, slice_: SliceKnobs) -> SliceKnobs:
        place = self.slices.index(slice_)
        there = [other for other in self.slices if self.wanted and self.wanted[other.name] > 0]
        return min(there, key=lambda other: abs(self.slices.index(other) - place))

    def _weight_in_target(self, slice_: SliceKnobs) -> float:
        if slice_.share is None:
            return 1.0 if self.target else 0.0
        return max(float(get_or_none(self.target, slice_.share.path) or 0.0), 0.0)


class Walker(PlainEngineer):
    """An engineer that goes along the ``Way``: it turns only shares and difficulties."""

    def can_turn(self, knobs: Sequence[Knob]) -> bool:
        slices = find_slices(knobs)
        dials = [
            knob
            for slice_ in with_beside(slices, knobs)
            for knob in slice_.difficulties
            if self.range_of(knob) is not None
        ]
        return len(slices) > 1 or bool(dials)


def fraction_with(success: float, here: float, there: float) -> float:
    """The fraction of the way, 0 to 1, at which this success is expected if it changes linearly from here to there.

    More success, here or there, never gives a smaller fraction.
    """
    if there >= success:
        return 1.0
    return (here - success) / (here - there) if here > success else 0.0


ALIVE = 0.2  # success from which a trainee learns from a distribution by itself


def shares_ahead(fraction: float, there: float) -> float:
    """How far the data goes when difficulties go that fraction of the way: twice as far, and all of it once the target is alive.

    We assume that a slice of the target at an easy setting teaches more about the target than another slice at a harder one. Single
    development runs suggested this; it was not measured by itself.
    """
    return 1.0 if fraction > 0 and there >= ALIVE else min(1.0, 2 * fraction)


def transported(start: Sequence[float], goal: Sequence[float], fraction: float) -> list[float]:
    """The distribution ``start``, moved that fraction of the way to ``goal`` by optimal transport; both have the same sum.

    Data that is then between two slices is split between them.
    """
    moved = [0.0] * len(start)
    source, sink = 0, 0
    left, room = start[0], goal[0]
    while True:
        mass = min(left, room)
        place = source + fraction * (sink - source)
        below = min(math.floor(place), len(start) - 1)
        moved[below] += mass * (1 - (place - below))
        if place > below:
            moved[below + 1] += mass * (place - below)
        left, room = left - mass, room - mass
        if left <= room:
            source += 1
            if source == len(start):
                return moved
            left = start[source]
        else:
            sink += 1
            if sink == len(goal):
                return moved
            room = goal[sink]


def _goes_in_steps(knob: Knob) -> bool:
    """Whether the distance between two of its values is a part of its schema, rather than of our rounding."""
    return knob.multiple_of is not None or "number" not in knob.types


def _step(start: float, end: float, fraction: float, least: float) -> float:
    """Move by that fraction of the way, and by ``least`` if there is a way: small fractions leave no knob unchanged for ever."""
    if fraction == 1:
        return end
    whole = end - start
    way = fraction * whole
    if 0 < abs(way) < least:
        way = math.copysign(min(least, abs(whole)), way)
    return start + way
