"""The answer format: a strict schema of exactly the editable knobs, and nothing else becomes a config."""

from __future__ import annotations

import copy
import json
import math
from enum import Enum
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

import engineers
from engineers import AnswerFormat, ReplyError
from engineers.knobs import KnobError, find_knobs
from engineers.model.answer_format import _has_type
from mapf_frozenlake import LakeConfig

LAKE = LakeConfig(slices={size: {"share": 0.5, "hole_ratio": 0.2, "wait_ratio": 0.1} for size in (3, 6, 10)})

STRICT = {
    *("type", "description", "properties", "required", "additionalProperties"),
    *("enum", "minimum", "maximum", "items", "minItems", "maxItems"),
}


def objects_in(schema):
    yield schema
    for value in schema.get("properties", {}).values():
        yield from objects_in(value)
    if "items" in schema:
        yield from objects_in(schema["items"])


@pytest.fixture(params=["lake", "kitchen"])
def answer_format(request, kitchen):
    return AnswerFormat(LAKE if request.param == "lake" else kitchen)


def test_schema_is_in_the_strict_subset(answer_format):
    for schema in objects_in(answer_format.schema):
        assert set(schema) <= STRICT
        if schema["type"] == "object":
            assert schema["additionalProperties"] is False
            assert schema["required"] == list(schema["properties"])
        assert schema.get("description") or schema["type"] in ("integer", "number", "string"), schema


def test_schema_has_exactly_the_editable_knobs_of_the_lake():
    config = AnswerFormat(LAKE).schema["properties"]["config"]["properties"]
    assert list(config) == ["slices"]
    sizes = config["slices"]["properties"]
    assert list(sizes) == ["3", "6", "10"]
    assert all(list(size["properties"]) == ["share", "hole_ratio", "wait_ratio"] for size in sizes.values())
    knob = sizes["6"]["properties"]["wait_ratio"]
    assert knob["type"] == ["number", "null"]
    assert (knob["minimum"], knob["maximum"]) == (0, 1)
    assert "an agent must wait" in knob["description"]


def test_bounds_outside_the_strict_subset_are_said_in_words(kitchen):
    heat = AnswerFormat(kitchen).schema["properties"]["config"]["properties"]["menu"]["properties"]["soup"][
        "properties"
    ]
    assert "exclusiveMinimum" not in heat["heat"]
    assert "above 0" in heat["heat"]["description"]


def test_the_unchanged_answer_gives_the_current_config(answer_format):
    assert answer_format.merge(answer_format.example()) == answer_format.current
    assert answer_format.reasons(answer_format.example(), answer_format.current) == []


def test_only_a_changed_knob_changes(kitchen):
    answer_format = AnswerFormat(kitchen)
    answer = answer_format.example()
    answer["config"]["menu"]["stew"]["steps"] = 7
    answer["reasons"] = [{"path": "menu.stew.steps", "reason": "too easy"}]
    config = answer_format.merge(answer)
    assert config.menu["stew"].steps == 7
    assert config.model_copy(update={"menu": kitchen.menu}) == kitchen
    (change,) = answer_format.reasons(answer, config)
    assert (change.path, change.old, change.new, change.reason) == ("menu.stew.steps", 3, 7, "too easy")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda menu: menu["soup"].pop("share"), "menu.soup.share is missing"),
        (lambda menu: menu["soup"].update(colour="red"), "menu.soup.colour cannot be edited"),
        (lambda menu: menu.update(cake={}), "menu.cake cannot be edited"),
        (lambda menu: menu["soup"].update(share="0.5"), "menu.soup.share is '0.5': give a value of type number"),
        (lambda menu: menu["soup"].update(share=True), "menu.soup.share is True"),
        (lambda menu: menu["soup"].update(steps=2.5), "menu.soup.steps is 2.5: give a value of type integer"),
        (lambda menu: menu["soup"].update(share=1.5), "menu.soup.share=1.5: Input should be less than or equal to 1"),
        (lambda menu: menu["soup"].update(heat=0.0), "greater than 0"),
        (lambda menu: menu["soup"].update(helper=None), "menu.soup.helper is None: give a value of type boolean"),
        (lambda menu: menu.update(soup=[1]), "menu.soup must be an object"),
        (lambda menu: [dish.update(share=0) for dish in menu.values()], "every dish has share 0"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(kitchen, change, said):
    answer_format = AnswerFormat(kitchen)
    answer = answer_format.example()
    change(answer["config"]["menu"])
    with pytest.raises(ReplyError, match=r"^config: ") as error:
        answer_format.merge(answer)
    assert said in str(error.value)


def test_all_faults_are_said_at_once(kitchen):
    answer = AnswerFormat(kitchen).example()
    del answer["config"]["menu"]["soup"]["share"]
    answer["config"]["style"] = 3
    with pytest.raises(ReplyError) as error:
        AnswerFormat(kitchen).merge(answer)
    assert "menu.soup.share" in str(error.value)
    assert "style" in str(error.value)


def test_knobs_outside_editable_cannot_be_reached(kitchen):
    answer_format = AnswerFormat(kitchen, ["menu.soup.share"])
    assert answer_format.example()["config"] == {"menu": {"soup": {"share": 0.5}}}
    with pytest.raises(ReplyError, match="owner cannot be edited"):
        answer_format.merge({"config": {"menu": {"soup": {"share": 0.1}}, "owner": "me"}})


@pytest.mark.parametrize("path", ["menu.cake.share", "menus", "menu.*.sugar", "owner.name"])
def test_a_path_that_names_nothing_is_an_error(kitchen, path):
    with pytest.raises(KnobError, match="names no knob of Kitchen"):
        find_knobs(kitchen, [path])


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 30),
    st.floats(-1, 400),
    st.sampled_from(["plain", "x", [], {}, [1], [1, 2]]),
)


@settings(deadline=None)
@given(st.data())
def test_merge_accepts_what_json_schema_accepts(data):
    """The oracle is the jsonschema package on the published schema; bounds it cannot say are drawn apart."""
    jsonschema = pytest.importorskip("jsonschema")
    answer_format = AnswerFormat(LAKE)
    answer = copy.deepcopy(answer_format.example())
    for _ in range(data.draw(st.integers(0, 3))):
        size = data.draw(st.sampled_from(["3", "6", "10"]))
        knob = data.draw(st.sampled_from(["share", "hole_ratio", "wait_ratio", "min_distance"]))
        if data.draw(st.booleans()):
            answer["config"]["slices"][size][knob] = data.draw(values)
        else:
            answer["config"]["slices"][size].pop(knob, None)
    well_formed = jsonschema.Draft202012Validator(answer_format.schema).is_valid(answer)
    shares = [part.get("share") for part in answer["config"]["slices"].values()]
    if well_formed and not any(shares):
        return  # the config's own rule: some share must be above 0
    try:
        config = answer_format.merge(answer)
    except ReplyError:
        assert not well_formed
    else:
        assert well_formed
        assert json.loads(json.dumps(answer_format.values_of(config))) == json.loads(json.dumps(answer["config"]))


def test_reasons_belong_to_changes_and_are_cut_at_two_thousand_characters(kitchen):
    answer_format = AnswerFormat(kitchen)
    config = kitchen.model_copy(update={"style": "fancy", "ovens": [3]})
    given = [{"path": "style", "reason": "r" * 3000}, "ovens", {"path": "owner", "reason": "no"}, {"reason": "none"}]
    style, ovens = answer_format.reasons({"reasons": given}, config)
    assert (style.path, style.old, style.new, style.reason) == ("style", "plain", "fancy", "r" * 2000)
    assert (ovens.path, ovens.old, ovens.new, ovens.reason) == ("ovens", [1, 2], [3], "")
    for nothing in ({}, {"reasons": None}, {"reasons": {"path": "style"}}, {"reasons": [{"path": "style"}]}):
        assert [change.reason for change in answer_format.reasons(nothing, config)] == ["", ""]


def test_what_is_wrong_with_an_answer_is_said_in_whole_sentences(kitchen):
    answer_format = AnswerFormat(kitchen, ["menu.soup.heat", "style", "menu.soup.salt"])
    soup = {"heat": 90.0, "salt": None}

    def said(**config):
        with pytest.raises(ReplyError) as error:
            answer_format.merge({"config": config})
        return str(error.value)

    assert said(menu={"soup": soup}) == "config: style is missing: write every knob, also those that stay as they are"
    assert said(style="plain", menu=[3]) == "config: menu must be an object with ['soup'], not [3]"
    assert said(style="plain", menu={"soup": soup}, a=1, b=2, c=3, d=4, e=5, f=6) == (
        "config: a, b, c, d, e cannot be edited: config has menu, style"
    )
    assert said(style="plain", menu={"soup": soup | {"reasons": []}}) == (
        "config: menu.soup.reasons cannot be edited: menu.soup has heat, salt"
    )
    assert said(style="plain", menu={"soup": soup | {"salt": "much"}}) == (
        "config: menu.soup.salt is 'much': give a value of type null or number"
    )
    with pytest.raises(ReplyError, match=r"^config: the answer must be an object with \['menu', 'style'\], not 3$"):
        answer_format.merge({"config": 3})


@pytest.mark.parametrize(
    ("schema", "fits", "does_not"),
    [
        ({"type": "integer"}, [3, 3.0, -1], [2.5, True, "3", None, float("inf")]),
        ({"type": "number"}, [3, 2.5], [True, "3", None]),
        ({"type": ["number", "null"]}, [3.5, None], [False, "x"]),
        ({"type": "boolean"}, [True, False], [1, 0, None]),
        ({"type": "string"}, ["x", ""], [1, None, ["x"]]),
        ({"type": "array"}, [[], [1]], ["x", None, {}]),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, [3, "x"], [2.5, None, True]),
    ],
)
def test_a_value_has_the_type_that_json_says(schema, fits, does_not):
    assert all(_has_type(value, schema) for value in fits)
    assert not any(_has_type(value, schema) for value in does_not)


def test_an_answer_without_a_config_of_its_own_is_the_config(kitchen):
    answer_format = AnswerFormat(kitchen, ["style"])
    assert answer_format.merge({"style": "fancy"}).style == "fancy"
    assert answer_format.merge({"reasons": [], "style": "fancy"}).style == "fancy"
    assert answer_format.schema["properties"]["reasons"] == {
        "type": "array", "maxItems": 1, "description": "One entry for each knob whose value you change, and none for the others.",
        "items": {
            "type": "object", "description": "One change and its reason.", "required": ["path", "reason"],
            "additionalProperties": False,
            "properties": {
                "path": {"type": "string", "enum": ["style"], "description": "The knob that you change."},
                "reason": {"type": "string", "description": "Why, in one sentence that names what you saw."},
            },
        },
    }  # fmt: skip


class Mixed(Enum):
    ONE = 1
    TWO = "two"


class Mixture(BaseModel):
    """Choices and tuples of several JSON types, each at a value whose type is not the first."""

    open: Literal["a", None] = None
    mode: Literal["auto", 1] = 1
    side: Literal[False, "left"] = "left"
    kind: Mixed = Mixed.TWO
    pair: tuple[int, str] = (1, "a")


def test_choices_and_tuples_of_several_types_come_back_as_they_are():
    jsonschema = pytest.importorskip("jsonschema")
    answer_format = AnswerFormat(Mixture())
    body = json.loads(json.dumps(answer_format.example()))
    jsonschema.validate(body, answer_format.schema)
    assert answer_format.merge(body) == Mixture()
    body["config"] |= {"open": "a", "mode": "auto", "side": False, "kind": 1, "pair": [2, "b"]}
    jsonschema.validate(body, answer_format.schema)
    assert answer_format.merge(body) == Mixture(open="a", mode="auto", side=False, kind=Mixed.ONE, pair=(2, "b"))


@pytest.mark.parametrize(("field", "value"), [("mode", "left"), ("side", True), ("kind", 2), ("pair", ["a", 1])])
def test_what_no_type_of_a_choice_has_is_refused(field, value):
    answer_format = AnswerFormat(Mixture())
    body = answer_format.example()
    body["config"][field] = value
    with pytest.raises(ReplyError, match=field):
        answer_format.merge(body)


def test_a_choice_of_several_types_is_drawn():
    drawn = [
        engineers.make("random", seed=seed).propose(engineers.StageReport(stage=0, config={}), Mixture()).config
        for seed in range(20)
    ]
    assert {config.mode for config in drawn} == {"auto", 1}
    assert {config.side for config in drawn} == {False, "left"}


class Files(BaseModel):
    one: str = "/home/me/a.txt"
    maps: list[str] = ["/home/me/a.txt", "plain", "/home/me/b.txt"]
    rows: list[list[str]] = [["/home/me/a.txt", "x"]]


@pytest.mark.parametrize(
    ("answered", "maps"),
    [
        (["<path>", "plain", "<path>"], ["/home/me/a.txt", "plain", "/home/me/b.txt"]),
        (["<path>", "other", "<path>", "more"], ["/home/me/a.txt", "other", "/home/me/b.txt", "more"]),
        (["plain", "<path>"], ["plain", "/home/me/a.txt"]),
        (["/data/c.txt"], ["/data/c.txt"]),
        ([], []),
    ],
)
def test_texts_that_were_shown_with_blanks_and_came_back_so_stay_in_lists_too(answered, maps):
    body = {"config": {"one": "<path>", "maps": answered, "rows": {"0": ["<path>", "y"]}}}
    assert AnswerFormat(Files()).merge(body) == Files(maps=maps, rows=[["/home/me/a.txt", "y"]])


class Unbounded(BaseModel):
    clip: float = math.inf
    limits: list[float] = [0.5, 1.0]
    wind: float = Field(0.1, ge=0, le=1)


def test_a_value_that_json_cannot_say_is_told_at_the_start():
    """No answer could keep it; where it is not editable, it stays."""
    with pytest.raises(KnobError, match=r"clip is inf, which JSON cannot express: .* leave it out of editable"):
        engineers.make("human").check_able(Unbounded())
    with pytest.raises(KnobError, match=r"limits is \[0\.5, nan\], which JSON cannot express"):
        AnswerFormat(Unbounded(clip=1.0, limits=[0.5, math.nan]))
    assert AnswerFormat(Unbounded(), ["wind"]).merge({"config": {"wind": 0.3}}) == Unbounded(wind=0.3)
