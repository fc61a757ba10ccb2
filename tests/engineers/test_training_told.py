"""What a prompt says of training: every slice's successes and score, then and now, and what is not there."""

from __future__ import annotations

import re

import pytest

from engineers import CONTEXTS, AnswerFormat, SliceResult, StageRecord, StageReport
from engineers.model import figures
from engineers.model.context import context_named
from engineers.model.prompt import build_prompt
from engineers.report import Split


def trained(name, won, played, score, halves=(), **more):
    return SliceResult(
        name=name, episodes=played, metrics={"valid_rate": won / played, "score": score}, halves=list(halves), **more
    )


def validated(**rates):
    return [SliceResult(name=name, episodes=50, metrics={"valid_rate": rate}) for name, rate in rates.items()]


@pytest.fixture
def config(kitchen):
    return kitchen.model_copy(update={"menu": {**kitchen.menu, "cake": kitchen.menu["soup"].model_copy()}})


@pytest.fixture
def told(config):
    """Soup rises in score alone; stew was mastered, then got no data; cake never had any."""
    data = config.model_dump(mode="json")
    data["menu"]["stew"]["share"] = data["menu"]["cake"]["share"] = 0.0
    first = StageRecord(
        stage=0,
        config=config.model_dump(mode="json"),
        results=validated(soup=0.0, stew=0.9),
        training_results=[trained("soup", 0, 400, 0.31), trained("stew", 90, 100, 0.95)],
    )
    halves = [None, Split(episodes=800, succeeded=0, score=0.5)]
    return StageReport(
        stage=1,
        objective="valid_rate",
        config=data,
        target=config.model_dump(mode="json"),
        results=validated(soup=0.0, stew=0.6),
        training_results=[trained("soup", 0, 800, 0.5, halves, repeats=Split(episodes=200, succeeded=150, score=0.8))],
        score_in_words="how hot it is",
        blind_scores={"soup": 0.082, "stew": 0.25},
        outcomes_in_words="It sampled.",
        history=[first],
    )


def text_of(report, config, context="informed"):
    return build_prompt(report, AnswerFormat(config), context_named(context)).messages[1]["content"]


def rows_of(text, title):
    section = text.split(f"## {title}")[1].split("\n#")[0]
    return {line[2:].partition(":")[0]: line.partition(": ")[2] for line in section.splitlines() if line[:2] == "- "}


def test_a_slice_has_its_count_its_interval_its_score_and_the_stages_before(told, config):
    text = text_of(told, config)
    assert "It sampled.\nA score is how hot it is." in text
    assert rows_of(text, "What training showed")["soup"] == (
        "0 of 800, 0.00 [0.00, 0.00]; score 0.50 [0.47, 0.53], a blind guess 0.08; halves of the stage: none, "
        "0 of 800 (0.50); seen before: 150 of 200; before: stage 0 0 of 400 (0.31)"
    )


def test_a_slice_without_data_keeps_its_last_figures_and_their_stage(told, config):
    rows = rows_of(text_of(told, config), "What training showed")
    said = "no episodes in this stage; stage 0 had 90 of 100, 0.90 [0.83, 0.94]; score 0.95 [0.89, 0.98], a blind guess 0.25"
    assert rows["stew"] == said
    assert rows["cake"] == "no episodes so far"
    bare = told.model_copy(update={"history": []})
    assert rows_of(text_of(bare, config), "What training showed")["cake, stew"] == "no episodes so far"


def test_without_partial_credit_no_score_is_told(told, config):
    plain = [trained("soup", 200, 800, 0.25), trained("stew", 90, 100, 0.9)]
    report = told.model_copy(update={"training_results": plain, "history": []})
    text = text_of(report, config)
    assert rows_of(text, "What training showed")["soup"] == "200 of 800, 0.25 [0.22, 0.28]"
    assert "score" not in text.split("# Guideline")[1]
    assert "its score rises" in text_of(told, config).split("# Guideline")[1]


def test_a_guideline_says_what_this_run_has_shown_of_a_slice_without_data(told, config):
    line = next(line for line in text_of(told, config).splitlines() if "without data is forgotten" in line)
    assert line.endswith("In this run, success changed over a stage without data by: stew -0.30.")
    first = told.model_copy(update={"history": []})
    assert "This run has not yet shown how fast." in text_of(first, config)


def test_where_nothing_is_validated_forgetting_is_seen_in_training(told):
    whole = Split(episodes=50, succeeded=45, score=0.9)
    rows = [trained("soup", 1, 2, 0.5)], [trained("stew", 90, 100, 0.9, [whole, whole]), trained("soup", 1, 2, 0.5)]
    low = trained("stew", 60, 100, 0.7, [Split(episodes=50, succeeded=20, score=0.5), whole])
    tables = [rows[1], rows[0], [low]]
    records = [
        StageRecord(stage=stage, config={}, results=[], training_results=table) for stage, table in enumerate(tables)
    ]
    assert figures.without_data(records, "valid_rate") == [("stew", pytest.approx(-0.5))]
    assert figures.without_data(records[:2], "valid_rate") == []


def test_how_many_questions_a_share_is(told, config):
    said = text_of(told, config).split("# The knobs")[1]
    assert "divided by the sum of all shares" in said
    assert "had 1,000 training episodes, so a tenth of that sum was about 100 of them" in said


def test_to_ease_is_advised_only_where_a_knob_can(told, config):
    shares = build_prompt(told, AnswerFormat(config, ["menu.*.share"]), CONTEXTS["informed"]).messages[1]["content"]
    assert "ease the settings" not in shares
    assert "ease the settings" in text_of(told, config)


@pytest.mark.parametrize("name", ["V1", "V2", "V3", "V4"])
def test_the_papers_contexts_show_the_failures_of_training_and_say_so(told, config, name):
    lost = trained("soup", 3, 10, 0.3, failures={"burnt": 5, "raw": 2})
    report = told.model_copy(update={"training_results": [lost]})
    text = text_of(report, config, name)
    assert rows_of(text, "Failures in training") == {"soup": "7 of 10 failed: 5 burnt, 2 raw"}
    assert "on validation" not in text.split("# Guideline")[0]
    nameless = text_of(told, config, name)
    assert rows_of(nameless, "Failures on validation") == {"soup": "50 of 50 failed", "stew": "20 of 50 failed"}


def test_earlier_stages_say_how_many_succeeded(told, config):
    text = text_of(told, config)
    assert rows_of(text, "Earlier stages") == {"soup": "0 of 50", "stew": "45 of 50"}
    assert not re.search(r"\b0 of \d+ failed", text)
