"""What a prompt holds of a report, by its structure: which figures stand in it, and that they are the report's."""

from __future__ import annotations

import re
from typing import Literal

import pytest
from pydantic import BaseModel, Field

from engineers import CONTEXTS, AnswerFormat, SliceResult, StageRecord, StageReport
from engineers.model import figures
from engineers.model.context import NAMES, context_named
from engineers.model.meter import estimate_tokens
from engineers.model.prompt import build_prompt
from engineers.report import FailureCase, Split
from engineers.tiers import Tier


def rows(episodes=50, **rates):
    return [
        SliceResult(name=name, episodes=episodes, metrics={"valid_rate": rate, "gap": 2.5}, failures={"burnt": round(episodes * (1 - rate))})
        for name, rate in rates.items()
    ]  # fmt: skip


@pytest.fixture
def told(kitchen):
    config = kitchen.model_dump(mode="json")
    earlier = [
        StageRecord(
            stage=stage, config=config, results=rows(soup=rate, stew=0.0), own_config_results=rows(20, soup=rate)
        )
        for stage, rate in enumerate((0.1, 0.4))
    ]
    return StageReport(
        stage=2,
        objective="valid_rate",
        config=config,
        target=config,
        trainee="A cook who learns by tasting.",
        aside=["gap"],
        failure_meanings={"burnt": "it was too hot", "raw": "it was too cold"},
        results=rows(soup=0.8, stew=0.2),
        own_config_results=rows(20, soup=0.9),
        splits={
            "soup": {"salted": Split(episodes=20, succeeded=5), "of_soup": Split(episodes=50, succeeded=40)},
            "stew": {"salted": Split(episodes=30, succeeded=3), "of_stew": Split(episodes=50, succeeded=10)},
        },
        environment_stats={"soup": {"cooks": 2.0, "heat": 99.0}, "stew": {"cooks": 2.0, "heat": 150.0}},
        training={"success_rate_curve": [0.1, 0.1, 0.3, 0.3, 0.5, 0.5, 0.7, 0.7]},
        cost={"env_steps": 5000.0, "episodes": 321.0},
        rounds_left=2,
        history=earlier,
    )


def text_of(report, config, context="informed"):
    return build_prompt(report, AnswerFormat(config), context_named(context)).messages[1]["content"]


def counts(line):
    return [(int(won), int(played)) for won, played in re.findall(r"(\d+) of (\d+)", line)]


def section(text, title):
    return text.split(f"## {title}")[1].split("\n#")[0]


def test_each_slice_and_all_together_have_their_counts_and_their_interval(told, kitchen):
    table = section(text_of(told, kitchen), "Results")
    lines = [line for line in table.splitlines() if line.startswith("- ")]
    assert [counts(line)[0] for line in lines[:2]] == [(40, 50), (10, 50)]
    for line, row in zip(lines[:2], told.results, strict=True):
        low, high = row.interval("valid_rate")
        assert f"[{low:.2f}, {high:.2f}]" in line
        assert f"{row.failures['burnt']} burnt" in line
        assert "gap" not in line, "put aside"
    assert lines[2] == "- all slices, weighed by the target: 0.50 ± 0.08"
    assert "probe" not in table
    own = section(text_of(told, kitchen), "What training showed")
    assert counts(next(line for line in own.splitlines() if "probe" in line)) == [(18, 20)]


def test_all_slices_are_weighed_by_the_target_however_much_was_played():
    results = [
        SliceResult(name="soup", episodes=10, metrics={"won": 0.0}),
        SliceResult(name="stew", episodes=990, metrics={"won": 1.0}),
        SliceResult(name="cake", episodes=10, metrics={"won": 1.0}),
    ]
    even = figures.overall(results, "won", {"soup": 1.0, "stew": 1.0, "cake": 0.0})
    assert even.rate == 0.5
    assert even.error == pytest.approx(0.5 * (1 / 12 * 11 / 12 / 10 + 991 / 992 * 1 / 992 / 990) ** 0.5)
    assert figures.overall(results, "won", {"other": 1.0}).rate == pytest.approx(1000 / 1010), (
        "the target names no slice"
    )
    assert figures.overall([], "won", {"soup": 1.0}) is None


def test_stages_stand_beside_their_typical_gain_and_beside_chance(told, kitchen):
    table = section(text_of(told, kitchen), "Results")
    line = next(line for line in table.splitlines() if line.startswith("All slices, stage by stage"))
    numbers = [float(number) for number in re.findall(r"[+-]?\d+\.\d+", line)]
    assert numbers[:3] == [0.05, 0.2, 0.5]
    assert numbers[3] == pytest.approx((0.5 - 0.05) / 2, abs=0.006)
    assert numbers[4] == pytest.approx(1.96 * (2 * 0.16 / 200 + 0.4 * 0.6 / 200) ** 0.5, abs=0.01)
    first = told.model_copy(update={"stage": 0, "history": []})
    assert "stage by stage" not in text_of(first, kitchen)


def test_the_curve_within_a_stage_is_told_by_quarters_where_it_has_as_many_points(told, kitchen):
    where, found = figures.quarters(told.training, "valid_rate")
    assert (where, found) == ("in training", pytest.approx([0.1, 0.3, 0.5, 0.7]))
    inside = {"valid_rate_curve": [0.0, 0.1, 0.2, 0.6]}
    assert figures.quarters({**told.training, **inside}, "valid_rate") == ("on validation", [0.0, 0.1, 0.2, 0.6])
    assert figures.quarters({"valid_rate_curve": [0.1], "success_rate_curve": [0.2] * 3}, "valid_rate") == ("", [])
    line = next(line for line in text_of(told, kitchen).splitlines() if "quarters" in line)
    assert [float(number) for number in re.findall(r"\d\.\d+", line)] == [0.1, 0.3, 0.5, 0.7]


def test_a_curve_stands_with_the_results_that_it_is_of(told, kitchen):
    text = text_of(told, kitchen)
    line = "Success in training within this stage, over its own mix of slices, by quarters"
    assert line in section(text, "What training showed")
    assert text.count("quarters") == 1
    assert "in training" not in section(text, "Results on validation")
    inside = told.model_copy(update={"training": {**told.training, "valid_rate_curve": [0.0, 0.1, 0.2, 0.6]}})
    text = text_of(inside, kitchen)
    assert "Success on validation within this stage, by quarters" in section(text, "Results on validation")
    assert text.count("quarters") == 1


def test_beside_training_s_outcomes_by_slice_a_probe_stands_and_no_curve(told, kitchen):
    text = text_of(told.model_copy(update={"training_results": rows(soup=0.7)}), kitchen)
    assert "On a probe of what it trained on: soup 18 of 20" in section(text, "What training showed")
    assert (text.count("What training showed"), text.count("quarters")) == (1, 0)


def test_parts_of_the_episodes_have_counts_and_no_part_is_its_slice(told, kitchen):
    lines = section(text_of(told, kitchen), "Successes on parts").splitlines()
    found = {line[2:].partition(":")[0]: counts(line) for line in lines if line.startswith("- ")}
    assert found == {"soup": [(5, 20)], "stew": [(3, 30)], "all slices": [(8, 50), (40, 50), (10, 50)]}
    low, high = Split(episodes=20, succeeded=5), Split(episodes=50, succeeded=40)
    assert figures.parts_of({"soup": {"a": low, "b": high}}, told.results) == {"soup": {"a": low}}
    both = {"soup": {"a": high}, "stew": {"a": high, "b": low}}
    assert figures.parts_of(both, told.results) == {"stew": {"b": low}, "all slices": {"b": low}}, "a is everywhere"


def test_the_trainee_what_a_stage_takes_and_the_kinds_that_occur_are_told(told, kitchen):
    text = text_of(told, kitchen)
    assert told.trainee in text
    left = section(text, "What is left")
    assert "5,000 env steps" in left
    assert "321 episodes" in left
    assert "it was too hot" in text
    assert "it was too cold" not in text, "no episode ever failed so"


def test_what_all_slices_have_alike_is_told_once(told, kitchen):
    lines = [line for line in section(text_of(told, kitchen), "What was really drawn").splitlines() if "cooks" in line]
    assert len(lines) == 1
    assert "heat" not in lines[0]


class Dish(BaseModel):
    choice: Literal["A", "B"] = Field("A", description="Which.", json_schema_extra={"meanings": {"A": "a soup", "B": "a stew"}})  # fmt: skip


def test_what_options_stand_for_is_told_once_and_not_in_the_schema(told):
    menu = told.model_copy(update={"config": {"choice": "A"}, "target": {"choice": "B"}, "target_words": "a big stew", "history": []})  # fmt: skip
    answer_format = AnswerFormat(Dish())
    text = text_of(menu, Dish())
    assert "- A: a soup" in text
    assert "- B: a stew" in text
    assert '{"choice": "B"}' in section(text, "The target")
    assert "a big stew" in section(text, "The target")
    assert "soup" not in str(answer_format.schema)


def test_every_context_can_show_cases_within_its_tokens(told, kitchen):
    cases = [FailureCase(slice="soup", kind="burnt", picture="x" * 400, explanation=f"case {n}") for n in range(40)]
    report = told.model_copy(update={"failure_cases": cases})
    assert set(NAMES) == {*CONTEXTS, *(f"{name}+cases" for name in CONTEXTS if name != "full")}
    for name in NAMES:
        context = context_named(name)
        assert context.name == name
        assert context.tier == (Tier.CASES if context.cases else Tier.REPORT)
        shown = len(re.findall(r"case \d+", text_of(report, kitchen, context)))
        assert bool(shown) == context.cases
    whole = context_named("V1+cases")
    less = whole.model_copy(update={"case_tokens": 300})
    sizes = [estimate_tokens(text_of(report, kitchen, context)) for context in (context_named("V1"), less, whole)]
    assert sizes[0] < sizes[1] <= sizes[0] + 400 < sizes[2] <= sizes[0] + whole.case_tokens + 400


@pytest.mark.parametrize(
    ("shows", "tier"),
    [
        ({"failures": False}, Tier.NOTHING), ({"failures": False, "target": True}, Tier.TARGET), ({"failures": False, "rounds": True}, Tier.HORIZON),
        ({"failures": False, "metrics": True}, Tier.SLICE_SUCCESS), ({}, Tier.REPORT), ({"failures": False, "history": "all"}, Tier.REPORT),
        ({"cases": True}, Tier.CASES),
    ],
)  # fmt: skip
def test_a_context_knows_what_it_shows(shows, tier):
    assert CONTEXTS["V1"].model_copy(update=shows).tier == tier
