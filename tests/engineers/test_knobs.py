"""Knobs are read from any pydantic model: nested, optional, listed, aliased, bounded in every way."""

from __future__ import annotations

import json
from enum import Enum
from typing import ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, computed_field

from engineers import AnswerFormat
from engineers.knobs import KnobError, changes, find_knobs, with_values
from engineers.roles import find_slices, natural_key
from mapf_frozenlake import LakeConfig
from tests.answers import answer_of


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Wind(BaseModel):
    speed: float = Field(3.0, ge=0, le=20, description="Metres per second.")
    gusts: list[float] = Field(default_factory=lambda: [1.0], min_length=1, max_length=3, description="Strengths.")


class World(BaseModel):
    """Everything that a config model may be made of."""

    model_config = ConfigDict(populate_by_name=True)

    wind: Wind = Wind()
    calm: Wind | None = None
    places: list[Wind] = Field(default_factory=lambda: [Wind(), Wind(speed=5)])
    colour: Colour = Colour.RED
    mode: Literal["day", "night"] | None = "day"
    fixed: Literal[7] = 7
    count: int = Field(4, multiple_of=4, ge=4, le=11)
    crowd: int | dict[str, float] = 2
    size: int = Field(3, alias="sideLength", gt=2, lt=9, description="Side.")
    pair: tuple[int, int] = (1, 2)
    anything: dict[str, object] = Field(default_factory=dict)


def knob(path, world=None):
    (found,) = find_knobs(world or World(), [path])
    return found


def test_all_knobs_of_a_model_in_its_order():
    assert [found.name for found in find_knobs(World())] == [
        *("wind.speed", "wind.gusts", "places.0.speed", "places.0.gusts", "places.1.speed", "places.1.gusts"),
        *("colour", "mode", "fixed", "count", "crowd", "sideLength", "pair"),
    ]


@pytest.mark.parametrize(
    ("path", "schema"),
    [
        ("colour", {"type": "string", "enum": ["red", "blue"]}),
        ("mode", {"type": ["string", "null"], "enum": ["day", "night", None]}),
        ("fixed", {"type": "integer", "enum": [7]}),
        ("count", {"type": "integer", "minimum": 4, "maximum": 11}),
        ("crowd", {"type": "integer"}),
        ("sideLength", {"type": "integer", "minimum": 2, "maximum": 9}),
        ("pair", {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "integer"}}),
        ("wind.gusts", {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "number"}}),
    ],
)
def test_schema_of_each_kind_of_knob(path, schema):
    found = dict(knob(path).schema)
    assert found.pop("description")
    assert found == schema


def test_what_strict_keywords_cannot_say_is_in_the_description():
    assert knob("sideLength").schema["description"] == "Side. Must be above 2. Must be below 9."
    assert "multiple of 4" in knob("count").schema["description"]


def test_the_value_decides_between_a_number_and_a_map():
    world = World(crowd={"2": 0.5, "3": 0.5})
    assert [found.name for found in find_knobs(world, ["crowd"])] == ["crowd.2", "crowd.3"]
    assert knob("crowd.2", world).schema["type"] == "number"


class Rain(BaseModel):
    kind: Literal["rain"] = "rain"
    force: int = Field(1, ge=0, le=3)


class Snow(BaseModel):
    kind: Literal["snow"] = "snow"
    force: float = Field(0.5, ge=0, le=9)


class Sky(BaseModel):
    weather: Rain | Snow = Field(Snow(), discriminator="kind")
    cover: Rain | Wind = Wind()


def test_the_value_decides_between_models():
    sky = {found.name: found.schema for found in find_knobs(Sky())}
    assert sky["weather.kind"]["enum"] == ["snow"]
    assert (sky["weather.force"]["type"], sky["weather.force"]["maximum"]) == ("number", 9)
    assert sky["cover.speed"]["maximum"] == 20
    assert {found.name for found in find_knobs(Sky(cover=Rain()), ["cover"])} == {"cover.kind", "cover.force"}


def test_what_a_config_computes_is_no_knob_and_does_no_harm():
    class Room(BaseModel):
        model_config = ConfigDict(extra="forbid")
        side: float = Field(2.0, ge=0, le=9)

        @computed_field
        def area(self) -> float:
            return self.side**2

    assert [found.name for found in find_knobs(Room())] == ["side"]
    assert with_values(Room(), {("side",): 3.0}).area == 9.0


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("winds.speed", "at the top there are wind, calm, places"),
        ("wind.sped", "below wind there are speed, gusts"),
        ("places.*.sped", "below places.0 there are speed, gusts"),
        ("places.7.speed", "below places there are 0, 1"),
        ("wind.speed.x", "below wind.speed there are none"),
        ("anything", "below anything there are none"),
    ],
)
def test_a_path_that_leads_nowhere_is_told_what_there_is(path, said):
    with pytest.raises(KnobError) as error:
        find_knobs(World(), [path])
    assert str(error.value).startswith(f"{path!r} names no knob of World: {said}")


def test_a_key_may_have_dots_of_its_own():
    class Calm(BaseModel):
        speed: float = Field(3.0, ge=0, le=20)

    class Sky(BaseModel):
        menu: dict[str, Calm] = Field(default_factory=lambda: {"gsm8k.v1": Calm(), "gsm8k": Calm()})

    world = Sky()
    for dotted in ("menu.gsm8k.v1", "menu.gsm8k.v1.speed", "menu.gsm8k.v1.*"):
        assert [found.path for found in find_knobs(world, [dotted])] == [("menu", "gsm8k.v1", "speed")]
    assert [found.path for found in find_knobs(world, ["menu.gsm8k"])] == [("menu", "gsm8k", "speed")]
    with pytest.raises(KnobError, match=r"below menu there are gsm8k\.v1, gsm8k"):
        find_knobs(world, ["menu.math.v1.speed"])


def test_what_a_class_opens_may_be_empty_in_a_config():
    """A map without keys has no knobs yet; a path that a caller writes out, or that the class misspells, is an error all the same."""

    class Kiosk(BaseModel):
        editable: ClassVar[tuple[str, ...]] = ("price", "notes.*")
        price: float = 1.0
        notes: dict[str, str] = Field(default_factory=dict)

    class Misspelt(Kiosk):
        editable: ClassVar[tuple[str, ...]] = ("price", "note.*")

    assert [found.name for found in find_knobs(Kiosk())] == ["price"]
    assert [found.name for found in find_knobs(Kiosk(notes={"soup": "hot"}))] == ["price", "notes.soup"]
    with pytest.raises(KnobError, match="below notes there are none"):
        find_knobs(Kiosk(), ["notes.*"])
    with pytest.raises(KnobError, match="names no knob"):
        find_knobs(Misspelt())


def test_places_of_a_list_are_told_apart():
    world = with_values(World(), {("places", "1", "speed"): 9.0})
    assert [place.speed for place in world.places] == [3.0, 9.0]
    assert changes(World(), world) == [(("places", "1", "speed"), 5.0, 9.0)]
    assert knob("places.1.speed").pattern == "places.*.speed"


def test_the_whole_world_goes_through_the_wire():
    answer_format = AnswerFormat(World())
    answer = answer_of({"colour": "blue", "mode": None, "sideLength": 5, "pair": [3, 4]})
    world = answer_format.merge(json.loads(answer))
    assert (world.colour, world.mode, world.size, world.pair) == (Colour.BLUE, None, 5, (3, 4))


def test_faults_of_values_are_sentences():
    with pytest.raises(KnobError) as error:
        with_values(World(), {("wind", "speed"): 21.0, ("count",): 6})
    assert str(error.value) == (
        "wind.speed=21.0: Input should be less than or equal to 20; count=6: Input should be a multiple of 4"
    )


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_fit_gives_a_value_that_the_model_takes(value):
    for path in ("wind.speed", "count"):
        found = knob(path)
        fitted = with_values(World(), {found.path: found.fit(value)})
        low, high = found.bounds
        assert low <= (fitted.wind.speed if path == "wind.speed" else fitted.count) <= high


def test_the_lakes_own_editable_is_the_default():
    names = {found.pattern for found in find_knobs(LakeConfig())}
    assert names == set(LakeConfig.editable)


def test_slices_are_in_natural_order_and_know_their_roles():
    lake = LakeConfig(slices={10: {}, 9: {}, 4: {}})
    slices = find_slices(find_knobs(lake))
    assert [piece.name for piece in slices] == ["4", "9", "10"]
    assert [found.field for found in slices[0].difficulties] == ["hole_ratio", "wait_ratio"]
    assert sorted(["level-10", "level-9", "b", "a2"], key=natural_key) == ["a2", "b", "level-9", "level-10"]


def test_a_field_may_say_its_role_and_space():
    class Part(BaseModel):
        weight: float = Field(1.0, ge=0, le=1, json_schema_extra={"role": "share"})
        share: float = Field(0.5, ge=0, le=1, json_schema_extra={"role": "difficulty", "space": [0.2, 0.4]})

    class Whole(BaseModel):
        parts: dict[str, Part]

    import engineers

    whole = Whole(parts={"a": Part(), "b": Part()})
    (first, _) = find_slices(find_knobs(whole))
    assert first.share.field == "weight"
    assert [found.field for found in first.difficulties] == ["share"]
    report = engineers.StageReport(stage=0, config={})
    for seed in range(20):
        drawn = engineers.make("random", seed=seed).propose(report, whole).config
        assert all(0.2 <= part.share <= 0.4 for part in drawn.parts.values())
