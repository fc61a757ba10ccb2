"""``reader`` on tasks that can all be learnt: what the page says is what is stored, and nothing was given up."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks import newcomer
from benchmarks._record import RESULTS

PAGE = Path(__file__).parents[2] / "docs" / "reader.md"


def test_the_page_says_what_is_stored():
    figures = json.loads((RESULTS / "newcomer.json").read_bytes())["figures"]
    found = newcomer.over_even(figures["ends"]["reader"], figures["ends"]["fixed"])
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"{found['mean']:+.1f} ({found['low']:+.1f}, {found['high']:+.1f}) points from even draws" in page
    assert f"a one-sided bound of {found['bound']:.1f}. The worst seed ends {-found['worst']:.1f} points below" in page


def test_no_task_was_given_up_on_seeds_that_had_no_part_in_the_choice():
    figures = json.loads((RESULTS / "newcomer.json").read_bytes())["figures"]
    assert figures["seeds"] == list(newcomer.SEEDS)
    assert min(figures["seeds"]) > 9
    assert not any(figures["given_up"].values())
    assert newcomer.spec().suites.last_alone
