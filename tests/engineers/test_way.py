"""The way to the target: shares are transported along the slices, difficulties go straight, and nothing else moves."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

import engineers
from engineers import SliceResult, StageReport
from engineers.knobs import KnobError, dump, find_knobs, with_values
from engineers.plain.base import Design
from engineers.plain.way import Way, fraction_with, transported
from engineers.roles import WHOLE, find_slices
from mapf_frozenlake import LakeConfig

GRAINS = 20_000


@st.composite
def heaps(draw, length=None):
    """Two heaps of one mass over the same slices, in whole grains."""
    length = length or draw(st.integers(1, 6))
    weights = st.lists(st.integers(0, 5), min_size=length, max_size=length).filter(any)
    return [[weight / sum(heap) for weight in heap] for heap in (draw(weights), draw(weights))]


@given(heaps(), st.floats(0, 1))
def test_nothing_is_lost_on_the_way_and_the_centre_goes_straight(pair, fraction):
    start, goal = pair
    moved = transported(start, goal, fraction)
    assert sum(moved) == pytest.approx(1)
    assert min(moved) >= 0

    def centre(heap):
        return sum(place * mass for place, mass in enumerate(heap))

    assert centre(moved) == pytest.approx((1 - fraction) * centre(start) + fraction * centre(goal))


@given(heaps())
def test_the_ends_of_the_way_are_the_heaps_themselves(pair):
    start, goal = pair
    assert transported(start, goal, 0.0) == pytest.approx(start)
    assert transported(start, goal, 1.0) == pytest.approx(goal)


@settings(max_examples=30)
@given(heaps(), st.floats(0, 1))
def test_each_grain_goes_its_own_part(pair, fraction):
    """Against an oracle that moves the k-th grain of one sorted heap to the k-th grain of the other."""

    def grains(heap):
        ends, places = 0.0, []
        for place, mass in enumerate(heap):
            ends += mass
            places += [place] * (round(ends * GRAINS) - len(places))
        return places

    expected = [0.0] * len(pair[0])
    for source, sink in zip(*map(grains, pair), strict=True):
        place = source + fraction * (sink - source)
        below = int(place)
        expected[below] += (1 - (place - below)) / GRAINS
        if place > below:
            expected[below + 1] += (place - below) / GRAINS
    assert transported(*pair, fraction) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("success", "here", "there", "fraction"),
    [
        (0.5, 0.8, 0.2, 0.5),  # half way down the line from .8 to .2
        (0.5, 0.9, 0.6, 1.0),  # the target itself is above it
        (0.5, 0.4, 0.1, 0.0),  # already below it
        (0.2, 0.4, 0.0, 0.5),
        (0.5, 0.3, 0.4, 0.0),  # neither has so much
        (0.5, 0.3, 0.5, 1.0),  # the target is the easier one
        (0.2, 1 / 62, 1 / 62, 0.0),  # nothing succeeds
    ],
)
def test_success_lies_on_the_line_from_here_to_there(success, here, there, fraction):
    assert fraction_with(success, here, there) == pytest.approx(fraction)


RATE = st.floats(0, 1)


@given(RATE, RATE, RATE, RATE, RATE)
def test_more_success_never_gives_an_easier_step(success, here, there, more_here, more_there):
    fraction = fraction_with(success, here, there)
    assert 0 <= fraction <= 1
    assert fraction_with(success, max(here, more_here), there) >= fraction - 1e-9
    assert fraction_with(success, here, max(there, more_there)) >= fraction - 1e-9


def walk(current, target, fraction, space=None):
    """The config that far on the way."""
    knobs = find_knobs(current, ("*",) if not isinstance(current, LakeConfig) else ("slices",))
    slices, design = find_slices(knobs), Design()
    way = Way(slices, dump(current), dump(target), lambda knob: (space or {}).get(knob.field, knob.bounds))
    way.turn_shares(design, way.wanted, fraction, "")
    for piece in slices:
        way.turn_dials(design, piece, fraction, "")
    return with_values(current, design.values)


def lakes(**slices):
    return LakeConfig(slices={int(size[1:]): piece for size, piece in slices.items()})


EASY = lakes(
    s4={"share": 1.0, "hole_ratio": 0.1, "wait_ratio": 0.0},
    s5={"share": 0.0, "hole_ratio": 0.1, "wait_ratio": None},
    s6={"share": 0.0, "hole_ratio": 0.1, "wait_ratio": 0.5},
)
TARGET = lakes(s6={"share": 0.4, "hole_ratio": 0.5, "wait_ratio": 1.0, "min_distance": 5})


def test_half_way_the_data_lies_on_the_stepping_stone_and_its_knobs_are_half_turned():
    half = walk(EASY, TARGET, 0.5).slices
    assert [half[size].share for size in (4, 5, 6)] == [0.0, 1.0, 0.0]
    assert [half[size].hole_ratio for size in (4, 5, 6)] == [0.3] * 3
    assert [half[size].wait_ratio for size in (4, 5, 6)] == [0.5, 0.5, 0.75]  # nothing said is the least of the range
    assert [half[size].min_distance for size in (4, 5, 6)] == [3] * 3


def test_at_its_end_every_slice_of_the_target_is_as_the_target_has_it():
    end = walk(EASY, TARGET, 1.0).slices
    assert end[6] == TARGET.slices[6].model_copy(update={"share": 1.0})
    assert end[4].share == end[5].share == 0.0


def test_small_parts_still_turn_whole_numbers():
    config = EASY
    for _ in range(4):
        config = walk(config, TARGET, 0.1)
    assert config.slices[6].min_distance == 5


class Steps(BaseModel):
    slope: float = Field(0.0, ge=0, le=1, multiple_of=0.25)
    count: int = Field(0, ge=0, le=8, multiple_of=2)


def test_small_parts_still_turn_numbers_of_coarse_steps():
    config, seen = Steps(), []
    for _ in range(4):
        config = walk(config, Steps(slope=1.0, count=8), 0.1)
        seen.append((config.slope, config.count))
    assert seen == [(0.25, 2), (0.5, 4), (0.75, 6), (1.0, 8)]


def test_what_the_target_leaves_open_stays_as_it_is():
    target = lakes(s6={"share": 1.0, "wait_ratio": None})
    assert [piece.wait_ratio for piece in walk(EASY, target, 0.5).slices.values()] == [0.0, None, 0.5]


def test_the_space_reaches_as_far_as_the_target_does_and_bounds_the_way_elsewhere():
    """Whoever knows the target never moves away from it: not from the target itself, and not on the way to it."""
    space = {"hole_ratio": (0.0, 0.4), "wait_ratio": (0.0, 0.75)}
    assert walk(EASY, TARGET, 1.0, space=space).slices[6] == TARGET.slices[6].model_copy(update={"share": 1.0})
    assert walk(TARGET, TARGET, 0.3, space=space).slices[6].wait_ratio == 1.0
    assert walk(EASY, TARGET, -1.0, space=space | {"hole_ratio": (0.05, 0.4)}).slices[6].hole_ratio == 0.05


def test_a_target_outside_the_default_space_is_reached_by_everybody_who_knows_it():
    """Waits 1.0 and holes .6 lie outside of what lakes are drawn from by default; it succeeds there already."""
    target = lakes(s5={"share": 1.0, "hole_ratio": 0.6, "wait_ratio": 1.0})
    done = SliceResult(name="5", episodes=200, metrics={"valid_rate": 0.95})
    for current in (target, lakes(s5={"share": 1.0, "hole_ratio": 0.5, "wait_ratio": 0.75})):
        report = StageReport(
            objective="valid_rate",
            stage=0,
            config=dump(current),
            target=dump(target),
            rounds_left=1,
            results=[done],
            training_results=[done],
        )
        for name in ("rules", "half-success", "progress-share", "schedule"):
            assert engineers.make(name).propose(report, current).config.slices[5] == target.slices[5], name
        assert engineers.make("uniform").propose(report, current).config.slices[5].hole_ratio < 0.6


class Hill(BaseModel):
    slope: float = Field(0.1, ge=0, le=0.9)
    length: int = Field(10, ge=1, le=100)


def test_a_config_without_slices_is_one_slice():
    knobs = find_knobs(Hill())
    (piece,) = find_slices(knobs)
    assert (piece.name, piece.share, [knob.field for knob in piece.difficulties]) == (WHOLE, None, ["slope", "length"])
    assert walk(Hill(), Hill(slope=0.5, length=50), 0.5) == Hill(slope=0.3, length=30)


class Car(BaseModel):
    """A knob of which less is harder, and one of which more is."""

    power: float = Field(4.0, ge=1, le=4)
    gravity: float = Field(0.5, ge=0, le=1)


@pytest.mark.parametrize(
    ("power", "gravity", "eased"),
    [
        (2.0, 0.5, (2.5, 0.375)),  # each back to where its way began
        (1.0, 1.0, (1.0, 0.75)),  # at the target nobody knows the direction: more is taken to be harder
    ],
)
def test_a_dial_is_eased_away_from_the_target(power, gravity, eased):
    car = Car(power=power, gravity=gravity)
    slices, design = find_slices(find_knobs(car)), Design()
    way = Way(slices, dump(car), {"power": 1.0, "gravity": 1.0}, lambda knob: knob.bounds)
    way.turn_dials(design, slices[0], -0.25, "too hard")
    after = with_values(car, design.values)
    assert (after.power, after.gravity) == pytest.approx(eased)


class Poles(BaseModel):
    """Two knobs that mirror each other: a longer pole is easier, a stronger wind harder."""

    length: float = Field(0.5, ge=0, le=1, json_schema_extra={"harder": "lower"})
    wind: float = Field(0.5, ge=0, le=1)


HUNDREDTHS = st.integers(0, 100).map(lambda at: at / 100)


@given(HUNDREDTHS, st.none() | HUNDREDTHS, st.integers(-4, 4).map(lambda at: at / 4))
def test_a_knob_whose_lower_values_are_harder_moves_as_the_mirror_of_one_whose_higher_are(value, aim, fraction):
    poles = Poles(length=1 - value, wind=value)
    target = {} if aim is None else {"length": 1 - aim, "wind": aim}
    slices, design = find_slices(find_knobs(poles)), Design()
    Way(slices, dump(poles), target, lambda knob: knob.bounds).turn_dials(design, slices[0], fraction, "")
    after = with_values(poles, design.values)
    assert after.length == pytest.approx(1 - after.wind, abs=2e-4)


@pytest.mark.parametrize("engineer", ["rules", "steady", "half-success"])
def test_at_a_target_that_is_too_hard_a_declared_knob_is_eased_and_not_made_harder(engineer):
    hard = Poles(length=0.3, wind=0.7)
    dead = [SliceResult(name=WHOLE, episodes=200, metrics={"success_rate": 0.0})]
    report = StageReport(
        objective="success_rate", stage=0, config=dump(hard), target=dump(hard), rounds_left=3, results=dead, training_results=dead
    )  # fmt: skip
    after = engineers.make(engineer).propose(report, hard).config
    assert after.length > 0.3
    assert after.wind < 0.7


def test_a_direction_that_there_is_not_is_refused():
    class Odd(BaseModel):
        length: float = Field(0.5, ge=0, le=1, json_schema_extra={"harder": "smaller"})

    with pytest.raises(KnobError, match="length: harder='smaller': give 'higher' or 'lower'"):
        find_slices(find_knobs(Odd()))
