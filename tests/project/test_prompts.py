"""The prompt of today beside version 1, for three stored reports: what it may cost, and that the page is of today."""

from __future__ import annotations

import pytest

from benchmarks import prompts


@pytest.fixture(scope="module")
def today():
    return prompts.now()


def test_no_question_costs_much_more_than_by_version_1(today):
    then = prompts.before()
    assert today.keys() == then.keys()
    for name, told in today.items():
        assert told.tokens <= prompts.MOST * then[name].tokens
        assert told.text != then[name].text


def test_the_page_shows_what_is_told_today(today):
    assert prompts.PAGE.read_text(encoding="utf-8") == prompts.page(today, prompts.before()), "run it with --write"
