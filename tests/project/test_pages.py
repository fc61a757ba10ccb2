"""The pages stay few and short, and each says first who needs it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))


def test_there_are_at_most_24_pages():
    assert 0 < len(PAGES) <= 24


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_short_and_begins_with_who_needs_it(page):
    text = page.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 300
    title, first = text.split("\n\n", 2)[:2]
    assert title.startswith("# ")
    assert re.match(r"For whoever |This page is for you ", first)


def test_the_readme_fits_few_screens():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    assert len(text.split()) <= 1_600
