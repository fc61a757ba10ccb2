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
        "0 of 800, 0.00 [0.00, 0.00]; score 0.50 [0.47, 0.53], a blind guess 0.08; halves none, "
        "0 of 800 (0.50); seen before: 150 of 200; before: 0 of 400 (0.31); total 1400"
    )
    assert "; before: stage 0, scores in brackets" in text
    assert "A score's interval takes every episode as all right or all wrong" in text


def test_where_questions_have_several_replies_the_interval_counts_questions(told, config):
    note = "an interval counts questions, not episodes"
    grouped = [trained("soup", 240, 480, 0.5, questions=30), trained("stew", 16, 16, 1.0, questions=1)]
    text = text_of(told.model_copy(update={"training_results": grouped}), config)
    rows = rows_of(text, "What training showed")
    assert rows["soup"].startswith("240 of 480 episodes of 30 questions, 0.50 [0.33, 0.67]; score 0.50 [0.33, 0.67], ")
    assert rows["stew"].startswith("16 of 16 episodes of 1 question, 1.00 [0.21, 1.00]; score 1.00 [0.21, 1.00], ")
    assert note in text
    assert note not in text_of(told, config)


def test_a_slice_of_repeats_alone_says_so_and_counts_them_once(told, config):
    again = trained("soup", 12, 24, 0.5, all_repeats=True)
    report = told.model_copy(update={"training_results": [again]})
    text = text_of(report, config)
    said = rows_of(text, "What training showed")["soup"]
    assert said.startswith("12 of 24, all seen before, 0.50 [0.31, 0.69]; score ")
    assert said.endswith("total 424")
    assert said.count("seen before") == 1
    assert "had 24 training episodes" in text
    earlier = told.model_copy(deep=True)
    earlier.history[0].training_results[0] = again
    assert (
        "; before: 12 of 24 seen before (0.50); " in rows_of(text_of(earlier, config), "What training showed")["soup"]
    )


def test_a_blind_guess_that_is_alike_everywhere_is_told_once(told, config):
    alike = told.model_copy(update={"blind_scores": dict.fromkeys(("soup", "stew", "cake"), 0.05)})
    assert text_of(alike, config).count("blind guess") == 1
    assert "A blind guess scores 0.05." in text_of(alike, config)


def test_a_slice_without_data_keeps_its_last_figures_and_their_stage(told, config):
    rows = rows_of(text_of(told, config), "What training showed")
    assert rows["stew"] == "no episodes since stage 0; before: 90 of 100 (0.95); total 100"
    assert rows["cake"] == "no episodes so far"
    bare = told.model_copy(update={"history": []})
    assert rows_of(text_of(bare, config), "What training showed")["cake, stew"] == "no episodes so far"


@pytest.mark.parametrize("untold", [{}, {"history": "none"}, {"history": "without_default"}])
def test_a_slice_keeps_its_last_figures_where_their_stage_is_not_told(told, config, untold):
    """Trimmed to a token budget, or left out by the context."""
    whole = build_prompt(told, AnswerFormat(config), CONTEXTS["informed"])
    context = CONTEXTS["informed"].model_copy(update=untold or {"token_budget": whole.tokens - 1})
    text = text_of(told, config, context)
    assert "Earlier stages" not in text
    rows = rows_of(text, "What training showed")
    assert rows["stew"] == "no episodes since stage 0; then: 90 of 100 (0.95); total 100"
    assert rows["cake"] == "no episodes so far"


def test_without_partial_credit_no_score_is_told(told, config):
    plain = [trained("soup", 200, 800, 0.25), trained("stew", 90, 100, 0.9)]
    report = told.model_copy(update={"training_results": plain, "history": []})
    text = text_of(report, config)
    assert rows_of(text, "What training showed")["soup"] == "200 of 800, 0.25 [0.22, 0.28]"
    assert "score" not in text.split("# Guideline")[1]
    assert "its score rises" in text_of(told, config).split("# Guideline")[1]


def guideline_of(report, config, about):
    text = text_of(report, config).split("# Guideline")[1]
    return next(line for line in text.splitlines() if about in line)


def test_a_guideline_says_what_this_run_has_shown_of_slices_with_less_data_or_none(told, config):
    line = guideline_of(told, config, "without data is forgotten")
    assert line.endswith(
        "changed their success by -0.30 in the only case, most: stew 0.90 → 0.60 (100 episodes, then none)."
    )
    first = told.model_copy(update={"history": []})
    assert guideline_of(first, config, "without data").endswith("so keep a little of the old.")


def test_what_had_nothing_to_forget_is_no_case_of_forgetting(told, config):
    """Soup got no data, but never had a success; stew got more."""
    now = [trained("stew", 95, 200, 0.6)]
    report = told.model_copy(update={"results": [], "training_results": now})
    report.history[0].results.clear()
    assert figures.starved(report.records(), "valid_rate") == []
    assert "had succeeded" not in text_of(report, config)


def stages_of(*tables):
    return [
        StageRecord(stage=stage, config={}, results=[], training_results=list(table))
        for stage, table in enumerate(tables)
    ]


def test_where_nothing_is_validated_forgetting_is_seen_in_training():
    whole, some = Split(episodes=50, succeeded=45, score=0.9), trained("soup", 1, 2, 0.5)
    low = trained("stew", 60, 100, 0.7, [Split(episodes=50, succeeded=20, score=0.5), whole])
    records = stages_of([trained("stew", 90, 100, 0.9, [whole, whole]), some], [some], [low])
    shown = figures.starved(records, "valid_rate")
    assert [(one.name, one.episodes) for one in shown] == [("stew", (100, 0))]
    assert shown[0].change == pytest.approx(-0.5), "of the first half with data again"
    assert figures.starved(records[:2], "valid_rate") == []


def test_of_many_slices_with_less_data_the_largest_falls_are_named_once_each():
    first = [trained(name, 90, 100, 0.9) for name in "abcde"]
    later = [trained(name, won, 20, 0.5) for name, won in zip("abcde", (2, 4, 6, 8, 20), strict=True)]
    last = [trained("a", 1, 10, 0.5), trained("b", 0, 11, 0.5)]
    shown = figures.starved(stages_of(first, later, last), "valid_rate")
    assert len(shown) == 6, "b got more than half of 20"
    assert [str(one) for one in figures.largest_falls(shown)] == [
        "a 0.90 → 0.10 (100 episodes, then 20)",
        "b 0.90 → 0.20 (100 episodes, then 20)",
        "c 0.90 → 0.30 (100 episodes, then 20)",
    ]
    assert figures.largest_falls([one for one in shown if one.name == "e"]) == [], "it rose"


def test_how_much_data_is_much_is_told_in_episodes_of_this_run(told, config):
    about = "after much data"
    assert guideline_of(told, config, about).endswith(
        "no slice that began without success has succeeded yet, with at most 1400 episodes."
    )
    risen = told.model_copy(update={"training_results": [trained("soup", 1, 800, 0.5)]})
    assert "had had 1200 episodes by the end of the stage of their first success" in guideline_of(risen, config, about)
    unseen = told.model_copy(update={"training_results": [], "history": []})
    assert "has not succeeded in several stages" in text_of(unseen, config)


def test_episodes_until_success_are_counted_over_stages_and_repeats():
    again = Split(episodes=30, succeeded=0, score=0.0)
    tables = (
        [trained("a", 0, 10, 0), trained("b", 0, 20, 0, repeats=again), trained("c", 5, 5, 1)],
        [trained("b", 0, 20, 0)],
        [trained("a", 3, 40, 0.2), trained("b", 0, 20, 0)],
        [trained("a", 40, 40, 1)],
    )
    assert figures.until_success(stages_of(*tables), "valid_rate") == ([50], [90])


def test_a_run_without_validation_says_so_once_and_has_no_empty_table(told, config):
    bare = told.model_copy(update={"results": []})
    bare.history[0].results.clear()
    text = text_of(bare, config)
    assert text.count("No stage was validated: training is all that was measured.") == 1
    assert "on validation" not in text
    assert "no validation episodes" not in text


def test_a_stage_that_was_not_validated_says_so_where_others_were(told, config):
    text = text_of(told.model_copy(update={"results": []}), config)
    assert "- no validation episodes in this stage" in text
    assert "No stage was validated" not in text


def test_the_length_of_an_answer_is_told(told, config):
    assert "each with a reason of one sentence of at most 20 words" in text_of(told, config)


def test_a_config_that_is_the_target_s_is_not_told_again(told, config):
    assert "Stage 0: as in the target\n" in text_of(told, config)
    untold = CONTEXTS["informed"].model_copy(update={"target": False})
    assert 'Stage 0: {"menu"' in text_of(told, config, untold)


def test_how_many_questions_a_share_is(told, config):
    said = text_of(told, config).split("# The knobs")[1]
    assert "divided by the sum of all shares" in said
    assert "had 1,000 training episodes and its shares add up to 0.5, so a share of 0.1 was about 200 of them" in said


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
