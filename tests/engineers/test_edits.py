"""An answer of changes alone: the same strictness, parser and guard as for a whole config, and far fewer words."""

from __future__ import annotations

import json

import pytest

import engineers
from engineers import AnswerFormat, Guard, ModelEngineer, ReplyError
from engineers.model.edits import EditsFormat
from engineers.model.replies import parse_reply
from mapf_frozenlake import LakeConfig
from tests.engineers.test_answer_format import STRICT


def edit(path, value, reason="it burns"):
    return {"path": path, "reason": reason, "value": value}


def edits(*changes):
    return json.dumps({"changes": list(changes)})


def test_an_entry_changes_its_knob_and_no_other(kitchen):
    answer_format = EditsFormat(kitchen)
    answer = {"changes": [edit("menu.stew.steps", 7), edit("menu.soup.salt", None, "as it was")]}
    config = answer_format.merge(answer)
    assert config.menu["stew"].steps == 7
    assert config.model_copy(update={"menu": kitchen.menu}) == kitchen
    (change,) = answer_format.reasons(answer, config)
    assert (change.path, change.old, change.new, change.reason) == ("menu.stew.steps", 3, 7, "it burns")


def test_an_empty_list_and_the_shape_that_is_shown_keep_the_config(kitchen):
    answer_format = EditsFormat(kitchen)
    for answer in (answer_format.example(), answer_format.shape()):
        config = answer_format.merge(answer)
        assert config == kitchen
        assert answer_format.reasons(answer, config) == []


@pytest.mark.parametrize("current", ["lake", "kitchen"])
def test_its_schema_is_strict_and_has_each_knob_once_with_its_own_values(kitchen, current):
    config = kitchen if current == "kitchen" else LakeConfig(slices={size: {"share": 0.5} for size in (3, 6)})
    answer_format = EditsFormat(config)
    entries = answer_format.schema["properties"]["changes"]["items"]["anyOf"]
    paths = [path for entry in entries for path in entry["properties"]["path"]["enum"]]
    assert sorted(paths) == sorted(knob.name for knob in answer_format.knobs)
    for schema in (answer_format.schema, *entries):
        assert set(schema) <= STRICT
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"])
    for entry in entries:
        for knob in answer_format.knobs:
            if knob.name in entry["properties"]["path"]["enum"]:
                assert entry["properties"]["value"] == knob.schema


def test_knobs_that_are_alike_have_one_entry(kitchen):
    items = EditsFormat(kitchen, ["menu.*.share"]).schema["properties"]["changes"]["items"]
    assert items["properties"]["path"]["enum"] == ["menu.soup.share", "menu.stew.share"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"reasons": [], "config": {}}, 'answer with {"changes": […]}'),
        ({"changes": {}}, 'answer with {"changes": […]}'),
        ({"changes": [], "config": {}}, "and nothing else"),
        ({"changes": ["share"]}, "entry 0 must be an object with path, reason, value"),
        ({"changes": [{"path": "style", "value": "fancy"}]}, "entry 0 must be an object"),
        ({"changes": [edit("style", "fancy") | {"old": "plain"}]}, "entry 0 must be an object"),
        ({"changes": [edit("owner", "me")]}, "owner cannot be edited"),
        ({"changes": [edit(["menu"], 1)]}, "cannot be edited"),
        ({"changes": [edit("menu.soup.share", "0.5")]}, "menu.soup.share is '0.5': give a value of type number"),
        ({"changes": [edit("menu.soup.share", True)]}, "menu.soup.share is True"),
        ({"changes": [edit("menu.soup.heat", 900.0)]}, "menu.soup.heat=900.0"),
        ({"changes": [edit("style", "fancy"), edit("style", "plain")]}, "style is changed twice"),
        ({"changes": [edit("menu.soup.share", 0), edit("menu.stew.share", 0)]}, "every dish has share 0"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(kitchen, answer, said):
    with pytest.raises(ReplyError, match=r"^changes: ") as error:
        EditsFormat(kitchen).merge(answer)
    assert said in str(error.value)


def test_a_model_is_asked_for_changes_and_corrected_until_they_fit(scripted, report, kitchen):
    draft = 'A draft: {"menu": 1}. '
    chat = scripted(
        edits(edit("menu.soup.heat", 900.0)), edits(edit("menu.soup.heat", 5.0)) + draft, model="local/edits"
    )
    proposal = ModelEngineer(chat, answer="changes").propose(report, kitchen)
    assert proposal.config.menu["soup"].heat == 5.0
    assert [(one.path, one.reason) for one in proposal.reasons] == [("menu.soup.heat", "it burns")]
    assert "menu.soup.heat=900.0" in proposal.refusals[0]
    question = chat.asked[0][-1]["content"]
    assert '{"changes": [{"path": "menu.soup.share", "reason": "why", "value": 0.5}]}' in question
    assert '"config"' not in question
    assert json.dumps(AnswerFormat(kitchen).values_of(kitchen)) in question
    assert "the part of every slice changes" in question


def test_the_guard_checks_changes_as_well(scripted, report, kitchen):
    chat = scripted(edits(edit("menu.soup.heat", 250.0)), edits())
    guard = Guard(feasible=lambda config: "too hot" if config.menu["soup"].heat > 200 else None)
    proposal = ModelEngineer(chat, answer="changes", guard=guard).propose(report, kitchen)
    assert proposal.config == kitchen
    assert not proposal.fallback
    assert "too hot" in proposal.refusals[0]


def test_a_replay_reads_changes_where_changes_were_recorded(scripted, report, kitchen, tmp_path):
    path = tmp_path / "transcript.jsonl"
    chat = scripted(edits(edit("menu.soup.heat", 90.0)))
    asked = ModelEngineer(chat, answer="changes", transcript=path).propose(report, kitchen)
    replayed = engineers.make(f"replay/{path}").propose(report, kitchen)
    assert replayed.config == asked.config
    assert not replayed.fallback


def test_another_answer_is_refused(scripted):
    with pytest.raises(ValueError, match="answer='diff': give config or changes"):
        ModelEngineer(scripted(), answer="diff")


def test_a_reply_is_known_by_the_key_of_its_format():
    text = '{"changes": [1]} or {"config": 2} or {"other": 3}'
    assert parse_reply(text, frozenset({"changes"})) == {"changes": [1]}
    assert parse_reply(text) == {"config": 2}
