"""How knobs, results and configs stand in a prompt, word by word."""

from __future__ import annotations

from typing import Literal

import pytest
from pydantic import BaseModel, Field

from engineers import CONTEXTS, AnswerFormat, Context, SliceResult, StageReport
from engineers.knobs import find_knobs
from engineers.model.prompt import _pairs, build_prompt, build_reask
from engineers.model.rows import failed, metric_of
from engineers.model.shown import ShownConfigs, compact, drawn, knob_docs
from engineers.report import StageRecord


class Every(BaseModel):
    low: float = Field(1.0, ge=0.5, description="Low.")
    high: int = Field(1, le=9, description="High.")
    both: int | None = Field(1, ge=0, le=9, description="Both.")
    style: Literal["plain", "fancy"] | None = Field("plain", description="Style.")
    open: bool = Field(True, description="Open.")
    words: str | None = Field(None, description="Words.")
    own: float = Field(1.0, ge=0, le=9, description="Own.", json_schema_extra={"space": [0, 9]})
    narrow: float = Field(1.0, ge=0, le=9, description="Narrow.", json_schema_extra={"space": [2, 3]})


def test_a_knob_is_told_by_its_meaning_its_bounds_and_what_is_sensible():
    assert knob_docs(find_knobs(Every()), {"low": (1, 4), "both": (0, 9)}, {}) == [
        "low: Low. Type number, at least 0.5; sensible are 1 to 4.",
        "high: High. Type integer, at most 9.",
        "both: Both. An integer from 0 to 9, or null.",  # as its bounds are
        "style: Style. One of plain, fancy, or null.",
        "open: Open. Type boolean.",
        "words: Words. Type string, or null.",
        "own: Own. A number from 0 to 9; sensible are 0 to 9.",  # the field says so itself
        "narrow: Narrow. A number from 0 to 9; sensible are 2 to 3.",
    ]


def test_what_is_sensible_reaches_to_the_target_on_either_side():
    def said(**target):
        return knob_docs(find_knobs(Every(), ["narrow"]), {}, target)[0].partition("; sensible are ")[2]

    assert (said(narrow=1.5), said(narrow=4), said(narrow=2.5), said(narrow=None)) == (
        "1.5 to 3.", "2 to 4.", "2 to 3.", "2 to 3.",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.123456, "0.1235"),
        (12345.6, "1.235e+04"),
        ("words", "words"),
        (3, "3"),
        (None, "null"),
        ([1, "ö"], '[1, "ö"]'),
    ],
)
def test_values_are_short(value, said):
    assert compact(value) == said


def test_what_was_drawn_stands_beside_what_was_asked_where_something_was():
    stats = {"hole_ratio": 0.31234, "distance": 4.0, "share": 0.5}
    assert drawn(stats, {"hole_ratio": 0.3, "distance": None}) == (
        "hole ratio 0.3123 (asked 0.3), distance 4, share 0.5"
    )
    assert _pairs({"mean_makespan": 4.14, "waits": 2}) == "mean makespan 4.14, waits 2"


@pytest.mark.parametrize(
    ("metric", "value", "said"),
    [
        ("valid_rate", 0.5, "0.50 [0.35, 0.65]"),
        ("valid_rate", 0.0, "0.00 [0.00, 0.09]"),
        ("valid_rate", 1.0, "1.00 [0.91, 1.00]"),
        ("valid_rate", 1.5, "1.5"),  # no rate, whatever it is called
        ("makespan", 0.5, "0.5"),
    ],
)
def test_a_rate_has_its_interval_and_nothing_else_has(metric, value, said):
    assert metric_of(SliceResult(name="4", episodes=40, metrics={metric: value}), metric) == said


def test_failures_are_counted_the_most_frequent_first():
    lost = {"hole": 2, "goal_missed": 5, "none": 0}
    assert failed(SliceResult(name="4", episodes=10, failures=lost), "won") == "7 of 10 failed: 5 goal missed, 2 hole"


def test_failures_without_kinds_are_counted_by_the_rate():
    assert failed(SliceResult(name="4", episodes=10, metrics={"won": 0.2}), "won") == "8 of 10 failed"


def shown(kitchen, editable=None):
    return ShownConfigs(AnswerFormat(kitchen, editable), kitchen.model_dump(mode="json"))


def menu(kitchen, **dishes):
    data = kitchen.model_dump(mode="json")
    return data | {"menu": {name: dish | dishes.get(name, {}) for name, dish in data["menu"].items()}}


def test_what_training_was_drawn_by_are_parts_of_the_data_and_the_numbers_of_each_slice(kitchen):
    found = ShownConfigs(AnswerFormat(kitchen), menu(kitchen, soup={"share": 0.25}, stew={"share": 1.0}))
    assert found.asked() == {
        "soup": {"share": 0.2, "heat": 100.0, "steps": 3, "salt": None},
        "stew": {"share": 0.8, "heat": 150.0, "steps": 3, "salt": 0.2},
    }
    nothing = ShownConfigs(AnswerFormat(kitchen), menu(kitchen, soup={"share": 0}, stew={"share": 0}))
    assert [piece["share"] for piece in nothing.asked().values()] == [0.0, 0.0]


def test_an_earlier_config_is_shown_by_what_changed_since_the_one_before(kitchen):
    def record(stage, **dishes):
        return StageRecord(stage=stage, config=menu(kitchen, **dishes), results=[])

    said = shown(kitchen, ["menu.*.share", "menu.*.heat"]).since
    first = record(0, stew={"share": 0.0})
    assert said(first, None) == '{"menu": {"soup": {"share": 0.5, "heat": 100.0}}}'
    assert said(first, None, menu(kitchen)) == said(first, None)
    assert said(first, None, first.config) == "as in the target"
    assert said(record(1, stew={"share": 0.0, "heat": 7.0}), first) == "as in stage 0"  # nothing is drawn by it
    assert said(record(1, soup={"heat": 90.5}), first) == (
        "since stage 0 menu.soup.heat 100 → 90.5, menu.stew.share 0 → 0.5, menu.stew.heat 150"
    )


def test_what_is_fixed_is_told_once_where_slices_agree_and_with_what_training_has_where_that_differs(kitchen):
    target = menu(kitchen, soup={"steps": 5, "salt": 0.1}, stew={"steps": 5, "salt": None})
    assert shown(kitchen, ["menu.*.share", "menu.*.heat"]).fixed(target) == (
        "menu.*.steps 5 (training has 3), menu.soup.salt 0.1 (training has null), "
        "menu.stew.salt null (Salt per portion; null for none) (training has 0.2), "
        "menu.*.helper true, style plain, ovens [1, 2], owner nobody"
    )


def test_signs_in_a_report_and_in_an_error_stand_as_they_are(kitchen, report):
    told = report.model_copy(update={"environment": "a < b & 'c' > \"d\""})
    messages = build_prompt(told, AnswerFormat(kitchen), CONTEXTS["V1"]).messages
    assert "The environment: a < b & 'c' > \"d\"" in messages[0]["content"]
    assert "Your answer was not accepted: a < b & c\n" in build_reask("a < b & c")["content"]


def test_pictures_keep_their_own_paths_and_stand_where_their_cases_are(kitchen, report):
    cases = [
        {"slice": "soup", "kind": "burnt", "picture": f"/kitchen/pot-{number} $POT", "explanation": f"Case {number}."}
        for number in range(12)
    ]
    told = StageReport.model_validate(report.model_dump() | {"failure_cases": cases})
    text = build_prompt(told, AnswerFormat(kitchen), Context(cases=True)).messages[1]["content"]
    places = [text.index(f"/kitchen/pot-{number} $POT") for number in range(12)]
    assert places == sorted(places)
    assert all(text.index(f"Case {number}.") < place + 400 for number, place in enumerate(places))
