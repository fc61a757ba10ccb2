"""The prompt of today beside an earlier version, for four stored reports: what it may cost, and that the page is of today."""

from __future__ import annotations

import json

import pytest

from benchmarks import prompts
from benchmarks._record import RESULTS
from engineers.model.context import context_named
from engineers.model.prompt import build_prompt


@pytest.fixture(scope="module")
def today():
    return prompts.now()


def test_no_question_costs_much_more_than_before(today):
    then = prompts.before()
    assert today.keys() == then.keys()
    for name, told in today.items():
        assert told.tokens <= prompts.MOST.get(name, 1.15) * then[name].tokens
        assert told.text != then[name].text


def test_the_page_shows_what_is_told_today(today):
    assert prompts.PAGE.read_text(encoding="utf-8") == prompts.page(today, prompts.before()), "run it with --write"
    assert today[prompts.SHOWN].text in prompts.PAGE.read_text(encoding="utf-8")


def test_the_texts_beside_the_page_are_what_is_told_today(today):
    for name, told in today.items():
        assert prompts.text_of_now(name).read_text(encoding="utf-8") == told.text, "run it with --write"


def test_a_question_about_many_slices_stays_within_the_default_budget():
    for count in prompts.SLICES:
        assert build_prompt(*prompts.about_slices(count), context_named(prompts.CONTEXT)).left_out == []


def test_the_tokens_by_slices_are_those_that_are_stored():
    stored = json.loads((RESULTS / "prompt_slices.json").read_bytes())["figures"]
    assert stored == {str(count): prompts.with_slices(count) for count in prompts.SLICES}
    page = " ".join(prompts.PAGE.read_text(encoding="utf-8").split())
    assert {row["answer"] for row in stored.values()} == {230}
    assert "An answer that changes four shares always has 230" in page
    then = prompts.with_slices_then()
    for counts in (
        [stored[str(count)]["question"] for count in prompts.SLICES],
        [then[str(count)]["question"] for count in prompts.SLICES],
        [then[str(count)]["answer"] for count in prompts.SLICES],
    ):
        few, some, many = (f"{tokens:,}" for tokens in counts)
        assert f"{few}, {some} and {many}" in page


def test_the_page_has_what_a_model_reached_in_both_forms_of_an_answer():
    page = " ".join(prompts.PAGE.read_text(encoding="utf-8").split())
    found = prompts.by_form()
    for form, name in (("config", "the whole config"), ("changes", "its changes alone")):
        success = " | ".join(f"{100 * one.success:.1f} %" for one in found[form])
        tokens = " | ".join(f"{one.tokens:,}" for one in found[form])
        assert f"| {name} | {success} | {tokens} |" in page
