"""The answer format: a strict schema of changes to exactly the editable knobs, and nothing else becomes a config."""

from __future__ import annotations

import json
import math
from enum import Enum
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

import engineers
from engineers import AnswerFormat, ReplyError
from engineers.knobs import KnobError, find_knobs
from engineers.model.answer_format import _has_type
from mapf_frozenlake import LakeConfig
from tests.answers import answer_of

LAKE = LakeConfig(slices={size: {"share": 0.5, "hole_ratio": 0.2, "wait_ratio": 0.1} for size in (3, 6, 10)})

STRICT = {
    *("type", "description", "properties", "required", "additionalProperties"),
    *("enum", "minimum", "maximum", "items", "minItems", "maxItems"),
}


def objects_in(schema):
    yield schema
    for part in [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]:
        yield from objects_in(part)
    if "items" in schema:
        yield from objects_in(schema["items"])


def entries_in(schema):
    """The schemas of the entries, one for each kind of value."""
    items = schema["properties"]["changes"]["items"]
    return items.get("anyOf", [items])


def edit(path, value, reason="it burns"):
    return {"path": path, "reason": reason, "value": value}


@pytest.fixture(params=["lake", "kitchen"])
def answer_format(request, kitchen):
    return AnswerFormat(LAKE if request.param == "lake" else kitchen)


def test_the_schema_is_in_the_strict_subset(answer_format):
    for schema in objects_in(answer_format.schema):
        if set(schema) == {"anyOf"}:
            continue
        assert set(schema) <= STRICT
        if schema["type"] == "object":
            assert schema["additionalProperties"] is False
            assert schema["required"] == list(schema["properties"])
        assert schema.get("description") or schema["type"] in ("integer", "number", "string"), schema


def test_the_schema_has_each_editable_knob_once_with_its_own_values(answer_format):
    entries = entries_in(answer_format.schema)
    paths = [path for entry in entries for path in entry["properties"]["path"]["enum"]]
    assert sorted(paths) == sorted(knob.name for knob in answer_format.knobs)
    for entry in entries:
        assert list(entry["properties"]) == ["path", "reason", "value"]
        for knob in answer_format.knobs:
            if knob.name in entry["properties"]["path"]["enum"]:
                assert entry["properties"]["value"] == knob.schema


def test_knobs_that_are_alike_have_one_entry(kitchen):
    (entry,) = entries_in(AnswerFormat(kitchen, ["menu.*.share"]).schema)
    assert entry["properties"]["path"]["enum"] == ["menu.soup.share", "menu.stew.share"]


def test_the_schema_says_what_a_knob_of_the_lake_may_be():
    entries = entries_in(AnswerFormat(LAKE).schema)
    (waits,) = [entry for entry in entries if "slices.6.wait_ratio" in entry["properties"]["path"]["enum"]]
    assert waits["properties"]["path"]["enum"] == [f"slices.{size}.wait_ratio" for size in (3, 6, 10)]
    value = waits["properties"]["value"]
    assert value["type"] == ["number", "null"]
    assert (value["minimum"], value["maximum"]) == (0, 1)
    assert "an agent must wait" in value["description"]


def test_the_schema_of_one_knob_is_told_in_full(kitchen):
    answer_format = AnswerFormat(kitchen, ["style"])
    assert answer_format.schema == {
        "type": "object", "description": "Your changes; an empty list keeps the config.", "required": ["changes"],
        "additionalProperties": False,
        "properties": {
            "changes": {
                "type": "array", "maxItems": 1, "description": "One entry for each knob whose value you change, and none for the others.",
                "items": {
                    "type": "object", "description": "One change and its reason.", "required": ["path", "reason", "value"],
                    "additionalProperties": False,
                    "properties": {
                        "path": {"type": "string", "enum": ["style"], "description": "The knob that you change."},
                        "reason": {"type": "string", "description": "Why, in one sentence that names what you saw."},
                        "value": answer_format.knobs[0].schema,
                    },
                },
            }
        },
    }  # fmt: skip


def test_bounds_outside_the_strict_subset_are_said_in_words(kitchen):
    (entry,) = entries_in(AnswerFormat(kitchen, ["menu.soup.heat"]).schema)
    assert "exclusiveMinimum" not in entry["properties"]["value"]
    assert "above 0" in entry["properties"]["value"]["description"]


def test_an_entry_changes_its_knob_and_no_other(kitchen):
    answer_format = AnswerFormat(kitchen)
    answer = {"changes": [edit("menu.stew.steps", 7), edit("menu.soup.salt", None, "as it was")]}
    config = answer_format.merge(answer)
    assert config.menu["stew"].steps == 7
    assert config.model_copy(update={"menu": kitchen.menu}) == kitchen
    (change,) = answer_format.reasons(answer, config)
    assert (change.path, change.old, change.new, change.reason) == ("menu.stew.steps", 3, 7, "it burns")


def test_an_empty_list_the_shape_that_is_shown_and_a_blank_answer_keep_the_config(answer_format):
    for answer in ({"changes": []}, answer_format.shape(), answer_format.blank()):
        config = answer_format.merge(json.loads(json.dumps(answer)))
        assert config == answer_format.current
        assert answer_format.reasons(answer, config) == []


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"reasons": [], "config": {}}, 'answer with {"changes": […]} and nothing else; an empty list keeps the config'),
        ({"changes": {}}, 'answer with {"changes": […]}'),
        ({"changes": [], "config": {}}, "and nothing else"),
        ({"changes": ["share"]}, "entry 0 must be an object with path, reason, value, not 'share'"),
        ({"changes": [{"path": "style", "value": "fancy"}]}, "entry 0 must be an object"),
        ({"changes": [edit("style", "fancy") | {"old": "plain"}]}, "entry 0 must be an object"),
        ({"changes": [edit("owner", "me")]}, "owner cannot be edited"),
        ({"changes": [edit("menu.cake.share", 0.5)]}, "menu.cake.share cannot be edited"),
        ({"changes": [edit("menu.soup", {})]}, "menu.soup cannot be edited"),
        ({"changes": [edit(["menu"], 1)]}, "cannot be edited"),
        ({"changes": [edit("menu.soup.share", "0.5")]}, "menu.soup.share is '0.5': give a value of type number"),
        ({"changes": [edit("menu.soup.share", True)]}, "menu.soup.share is True"),
        ({"changes": [edit("menu.soup.steps", 2.5)]}, "menu.soup.steps is 2.5: give a value of type integer"),
        ({"changes": [edit("menu.soup.salt", "much")]}, "menu.soup.salt is 'much': give a value of type null or number"),
        ({"changes": [edit("menu.soup.helper", None)]}, "menu.soup.helper is None: give a value of type boolean"),
        ({"changes": [edit("menu.soup.share", 1.5)]}, "menu.soup.share=1.5: Input should be less than or equal to 1"),
        ({"changes": [edit("menu.soup.heat", 0.0)]}, "greater than 0"),
        ({"changes": [edit("menu.soup.heat", 900.0)]}, "menu.soup.heat=900.0"),
        ({"changes": [edit("style", "fancy"), edit("style", "plain")]}, "style is changed twice"),
        ({"changes": [edit("menu.soup.share", 0), edit("menu.stew.share", 0)]}, "every dish has share 0"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(kitchen, answer, said):
    with pytest.raises(ReplyError, match=r"^changes: ") as error:
        AnswerFormat(kitchen).merge(answer)
    assert said in str(error.value)


def test_all_faults_are_said_at_once(kitchen):
    with pytest.raises(ReplyError) as error:
        AnswerFormat(kitchen).merge({"changes": ["soup", edit("owner", "me"), edit("style", 3)]})
    for fault in ("entry 0", "owner", "style"):
        assert fault in str(error.value)


def test_knobs_outside_editable_cannot_be_reached(kitchen):
    answer_format = AnswerFormat(kitchen, ["menu.soup.share"])
    assert answer_format.values_of(kitchen) == {"menu": {"soup": {"share": 0.5}}}
    with pytest.raises(ReplyError, match=r"menu\.soup\.heat cannot be edited"):
        answer_format.merge({"changes": [edit("menu.soup.share", 0.1), edit("menu.soup.heat", 90.0)]})


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


@given(st.data())
def test_merge_accepts_what_json_schema_accepts(data):
    """The oracle is the jsonschema package on the published schema; that no knob is changed twice it cannot say."""
    jsonschema = pytest.importorskip("jsonschema")
    answer_format = AnswerFormat(LAKE)
    knobs = ["share", "hole_ratio", "wait_ratio", "min_distance"]
    names = st.builds("slices.{}.{}".format, st.sampled_from([3, 6, 10, 4]), st.sampled_from(knobs))
    entries = [edit(name, data.draw(values)) for name in data.draw(st.lists(names, max_size=3, unique=True))]
    for entry in entries:
        if data.draw(st.integers(0, 5)) == 0:
            entry.pop(data.draw(st.sampled_from(["path", "reason", "value"])))
    answer = {"changes": entries}
    well_formed = jsonschema.Draft202012Validator(answer_format.schema).is_valid(answer)
    given = {entry.get("path"): entry.get("value") for entry in entries}
    if well_formed and not any(given.get(f"slices.{size}.share", 0.5) for size in (3, 6, 10)):
        return  # the config's own rule: some share must be above 0
    try:
        config = answer_format.merge(answer)
    except ReplyError:
        assert not well_formed
    else:
        assert well_formed
        sizes = answer_format.values_of(config)["slices"]
        found = {f"slices.{size}.{knob}": value for size, part in sizes.items() for knob, value in part.items()}
        assert json.loads(json.dumps(found)) == json.loads(json.dumps(found | given))


def test_reasons_belong_to_changes_and_are_cut_at_two_thousand_characters(kitchen):
    answer_format = AnswerFormat(kitchen)
    given = [edit("style", "fancy", "r" * 3000), edit("ovens", [3], ""), edit("menu.soup.share", 0.5, "as it was")]
    style, ovens = answer_format.reasons({"changes": given}, answer_format.merge({"changes": given}))
    assert (style.path, style.old, style.new, style.reason) == ("style", "plain", "fancy", "r" * 2000)
    assert (ovens.path, ovens.old, ovens.new, ovens.reason) == ("ovens", [1, 2], [3], "")


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
    body = json.loads(json.dumps(answer_format.blank()))
    jsonschema.validate(body, answer_format.schema)
    assert answer_format.merge(body) == Mixture()
    body = json.loads(answer_of({"open": "a", "mode": "auto", "side": False, "kind": 1, "pair": [2, "b"]}))
    jsonschema.validate(body, answer_format.schema)
    assert answer_format.merge(body) == Mixture(open="a", mode="auto", side=False, kind=Mixed.ONE, pair=(2, "b"))


@pytest.mark.parametrize(("field", "value"), [("mode", "left"), ("side", True), ("kind", 2), ("pair", ["a", 1])])
def test_what_no_type_of_a_choice_has_is_refused(field, value):
    with pytest.raises(ReplyError, match=field):
        AnswerFormat(Mixture()).merge(json.loads(answer_of({field: value})))


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
    body = answer_of({"one": "<path>", "maps": answered, "rows.0": ["<path>", "y"]})
    assert AnswerFormat(Files()).merge(json.loads(body)) == Files(maps=maps, rows=[["/home/me/a.txt", "y"]])


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
    assert AnswerFormat(Unbounded(), ["wind"]).merge({"changes": [edit("wind", 0.3)]}) == Unbounded(wind=0.3)
