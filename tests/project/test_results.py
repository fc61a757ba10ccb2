"""What the pages claim is what is stored."""

from __future__ import annotations

from benchmarks.readme import PAGE, page


def test_the_page_of_results_is_made_from_the_results():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m benchmarks.readme`"
