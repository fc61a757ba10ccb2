"""What a knob is for and how far it goes: roles, shares of the data, ranges, nearest values; and one value's strict schema."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import BaseModel, Field

import engineers
from engineers.knobs import Knob, KnobError, find_knobs
from engineers.roles import WHOLE, SliceKnobs, find_slices, role_of, shares_of, split_by_role, with_beside
from engineers.space import checked_space, raise_unless_knobs, range_of
from engineers.strict import branches, description, strict_schema

BOUNDED = {"type": "number", "minimum": 0, "maximum": 1}


def knob(field="heat", schema=BOUNDED, value=0.5, multiple_of=None, **extra):
    return Knob(("menu", "soup", field), f"menu.*.{field}", schema, value, extra, multiple_of)


@pytest.mark.parametrize(
    ("one", "role"),
    [
        (knob("share"), "share"),
        (
            knob("share", {"type": "number", "minimum": 0}),
            "none",
        ),  # a share without an upper bound is no part of a whole
        (knob("heat"), "difficulty"),
        (knob("heat", {"type": "number", "maximum": 1}), "none"),
        (knob("heat", {"type": ["integer", "null"], "minimum": 0, "maximum": 9}), "difficulty"),
        (knob("heat", {"type": "string", "minimum": 0, "maximum": 9}), "none"),
        (knob("share", role="difficulty"), "difficulty"),
        (knob("weight", {"type": "number"}, role="share"), "share"),
        (knob("heat", role="none"), "none"),
    ],
)
def test_a_knobs_role_is_what_its_field_says_or_follows_from_its_name_and_bounds(one, role):
    assert role_of(one) == role
    assert split_by_role([one]) == (([one], []) if role == "share" else ([], [one]))


class Flat(BaseModel):
    share: float = Field(0.5, ge=0, le=1)
    wind: float = Field(0.2, ge=0, le=1)


def test_a_share_of_the_whole_config_makes_no_slice():
    (piece,) = find_slices(find_knobs(Flat()))
    assert (piece.name, piece.share, [one.field for one in piece.difficulties]) == (WHOLE, None, ["wind"])
    assert find_slices([knob("style", {"type": "string"})]) == ()


class Oven(BaseModel):
    heat: float = Field(0.5, ge=0, le=1)


class Cooked(BaseModel):
    share: float = Field(0.5, ge=0, le=1)
    salt: float = Field(0.2, ge=0, le=1)
    oven: Oven = Oven()


class Canteen(BaseModel):
    noise: float = Field(0.1, ge=0, le=1)
    cold: dict[str, Cooked] = {"1": Cooked(), "10": Cooked()}
    hot: dict[str, Cooked] = {"9": Cooked()}


def test_all_that_is_below_a_slice_is_in_it_and_what_is_beside_them_holds_for_all():
    knobs = find_knobs(Canteen())
    slices = find_slices(knobs)
    assert [(piece.name, piece.share.name) for piece in slices] == [
        ("1", "cold.1.share"),
        ("9", "hot.9.share"),
        ("10", "cold.10.share"),
    ]
    assert [one.name for one in slices[1].difficulties] == ["hot.9.salt", "hot.9.oven.heat"]
    *same, beside = with_beside(slices, knobs)
    assert tuple(same) == slices
    assert (beside.name, beside.share, [one.name for one in beside.difficulties]) == (WHOLE, None, ["noise"])
    for alone in (Flat(), Canteen().cold["1"]):
        assert with_beside(find_slices(find_knobs(alone)), find_knobs(alone)) == find_slices(find_knobs(alone))


def test_slices_of_one_name_are_refused():
    twice = Canteen(hot={"1": Cooked()})
    with pytest.raises(KnobError) as said:
        find_slices(find_knobs(twice))
    assert all(place in str(said.value) for place in ("cold.1", "hot.1", "'1'"))
    with pytest.raises(KnobError, match=r"cold\.1 and hot\.1"):
        engineers.make("rules").check_able(twice)


def test_shares_are_parts_of_one_and_null_or_nothing_is_none_of_it():
    pieces = [
        SliceKnobs(name, Knob((name, "share"), "*.share", BOUNDED, 0.0, {}), ()) for name in ("soup", "stew", "cake")
    ]
    data = {"soup": {"share": 0.5}, "stew": {"share": 1.5}, "cake": {"share": None}}
    assert shares_of(data, pieces) == {"soup": 0.25, "stew": 0.75, "cake": 0.0}
    nothing = {name: {"share": 0} for name in data}
    assert shares_of(nothing, pieces) == {"soup": 0.0, "stew": 0.0, "cake": 0.0}
    assert shares_of({}, [SliceKnobs(WHOLE, None, ())]) == {WHOLE: 1.0}


@pytest.mark.parametrize(
    ("schema", "multiple_of", "value", "fitted"),
    [
        (BOUNDED, None, -1, 0),
        (BOUNDED, None, 2, 1),
        (BOUNDED, None, 0.123456, 0.1235),
        (BOUNDED | {"minimum": 0.00004}, None, 0, 0.00004),  # rounding never leaves the bounds
        (BOUNDED | {"maximum": 0.99996}, None, 1, 0.99996),
        (BOUNDED, 0.25, 0.4, 0.5),
        ({"type": "integer"}, None, 2.6, 3),
        ({"type": "integer", "minimum": 1, "maximum": 5}, None, 7.2, 5),
        ({"type": "integer", "minimum": 5, "maximum": 11}, 4, 0, 8),
        ({"type": "integer", "minimum": 5, "maximum": 11}, 4, 11, 8),
        ({"type": "integer", "minimum": 4, "maximum": 12}, 4, 99, 12),
        ({"type": "integer", "minimum": 4, "maximum": 12}, 4, 1, 4),
        (BOUNDED | {"maximum": 0.01}, 0.00025, 0.0047, 0.00475),  # a multiple is not rounded away from itself
        (BOUNDED, 0.1, 0.31, 0.3),
        (BOUNDED | {"minimum": 1e-5, "maximum": 1e-4}, None, 4.12345678e-5, 4.123e-5),  # digits follow the range
        (BOUNDED | {"maximum": 0.9}, None, 0.123456, 0.1235),
        (BOUNDED | {"maximum": 300}, None, 123.456789, 123.4568),
        (BOUNDED | {"maximum": 0.99994}, None, 1, 0.99994),  # an end is not rounded
    ],
)
def test_the_nearest_value_that_a_knob_can_take(schema, multiple_of, value, fitted):
    found = knob(schema=schema, multiple_of=multiple_of).fit(value)
    assert found == fitted
    assert isinstance(found, int) is (schema["type"] == "integer")


def test_digits_follow_the_range_that_a_knob_is_turned_within_and_its_ends_stay():
    narrow = (1e-5, 1.00004e-4)
    assert [knob().fit(value, narrow) for value in (2.345678e-5, *narrow)] == [2.346e-5, *narrow]
    assert knob(schema={"type": "number"}).fit(2.345678e-5, narrow) == 2.346e-5
    assert [knob().fit(0.33333), knob().fit(0.33333, exact=0.33333)] == [0.3333, 0.33333]


def test_the_runs_space_comes_before_the_fields_own_and_that_before_its_bounds():
    own = knob(space=[0.2, 0.4])
    assert range_of(own, {"menu.*.heat": (0.1, 0.9)}) == (0.1, 0.9)
    assert range_of(own, {"menu.soup.heat": (0.3, 0.5)}) == (0.3, 0.5)
    assert range_of(own, {"menu.stew.heat": (0.3, 0.5)}) == (0.2, 0.4)
    assert range_of(knob(), {}) == (0.0, 1.0)
    assert range_of(knob(schema={"type": "number", "minimum": 0}), {}) is None


def test_a_range_of_one_knob_comes_before_that_of_all_like_it():
    space = {"menu.*.heat": (0.1, 0.9), "menu.soup.heat": (0.3, 0.5)}
    assert range_of(knob(), space) == (0.3, 0.5)
    assert range_of(replace(knob(), path=("menu", "stew", "heat")), space) == (0.1, 0.9)


def test_a_space_is_read_as_numbers_and_may_be_one_value():
    assert checked_space({"wind": (1, 1), "rain": [0, 2]}) == {"wind": (1.0, 1.0), "rain": (0.0, 2.0)}
    assert checked_space(None) == {}


def test_a_space_may_name_any_knob_by_its_pattern_or_its_own_name(kitchen):
    raise_unless_knobs({"menu.*.heat": (0, 1), "menu.soup.heat": (0, 1), "style": (0, 1)}, kitchen)
    raise_unless_knobs({}, kitchen)
    with pytest.raises(KnobError) as said:
        raise_unless_knobs({"stove": (0, 1), "heat": (0, 1)}, kitchen)
    assert str(said.value) == (
        "space heat, stove is not a knob of Kitchen: use menu.*.share, menu.*.heat, menu.*.steps, menu.*.salt"
    )


ROOT = {"$defs": {"Size": {"type": "integer", "minimum": 1, "maximum": 9, "description": "How big."}}}
SIZE = {"$ref": "#/$defs/Size"}


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({"const": 3}, {"type": "integer", "enum": [3]}),
        ({"const": True}, {"type": "boolean", "enum": [True]}),
        ({"enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"enum": [1.5]}, {"type": "number", "enum": [1.5]}),
        ({"enum": [1, 2.5], "type": "number"}, {"type": "number", "enum": [1, 2.5]}),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 2}, BOUNDED | {"maximum": 2}),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, {"type": ["integer", "null"]}),
        ({"anyOf": [{"enum": ["a"]}, {"type": "null"}]}, {"type": ["string", "null"], "enum": ["a", None]}),
        (
            {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]},
            {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]},
        ),
        ({"oneOf": [{"type": "object"}, {"type": "string"}], "discriminator": {}}, {"type": "string"}),
        ({"type": "null"}, None),
        ({"type": "object"}, None),
        ({}, None),
        ({"type": "array"}, None),
        ({"type": "array", "items": {"type": "object"}}, None),
        ({"type": "array", "items": SIZE}, {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 9}}),
        ({"type": "array", "prefixItems": [{"type": "string"}]}, {"type": "array", "items": {"type": "string"}}),
        # several types: a branch for each
        ({"enum": ["a", None]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"const": None}, None),
        (
            {"enum": ["a", 1, "b"]},
            {"anyOf": [{"type": "string", "enum": ["a", "b"]}, {"type": "integer", "enum": [1]}]},
        ),
        ({"enum": [False, 0]}, {"anyOf": [{"type": "boolean", "enum": [False]}, {"type": "integer", "enum": [0]}]}),
        # providers know no schema by place
        (
            {"type": "array", "prefixItems": [SIZE, {"type": "string"}, SIZE], "minItems": 3, "maxItems": 3},
            {
                "type": "array",
                "minItems": 3,
                "maxItems": 3,
                "items": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 9}, {"type": "string"}]},
            },
        ),
        (SIZE | {"maximum": 5}, {"type": "integer", "minimum": 1, "maximum": 5}),
    ],
)
def test_what_a_values_schema_is_in_the_subset_that_every_provider_takes(schema, strict):
    assert strict_schema(ROOT, schema) == strict


def test_what_the_strict_keywords_cannot_say_is_said_in_words():
    schema = {"type": "string", "minLength": 2, "maxLength": 9, "pattern": "^a"}
    assert description(schema, [schema], "dish_name") == (
        "dish name At least 2 characters. At most 9 characters. Must match ^a."
    )
    number = {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 9, "multipleOf": 3}
    assert description({"description": " Steps. "}, [number], "steps") == (
        "Steps. Must be above 0. Must be below 9. Must be a multiple of 3."
    )
    assert description(SIZE, branches(ROOT, SIZE), "size") == "How big."
