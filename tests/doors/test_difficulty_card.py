"""The card counts what the judge finds valid, row by row; what is stored is what the page shows."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks import difficulty_card as card

ROOT = Path(__file__).parents[2]


def test_a_row_moves_one_knob_and_counts_what_is_solved():
    found = card.row("num_agents", 1, boards=40)
    assert (found["knob"], found["value"], found["boards"]) == ("num_agents", 1, 40)
    assert found["oracle"]["solved"] == found["greedy"]["solved"] == 1.0  # alone there is nobody to bump into
    assert found["random"]["solved"] < 1.0
    waits = card.row("wait_ratio", 1.0, boards=40)
    assert waits["oracle"]["solved"] == 1.0
    assert waits["greedy"]["solved"] < 0.2


def test_the_stored_card_is_the_page_s():
    stored = json.loads((ROOT / "benchmarks/results/difficulty_card.json").read_text(encoding="utf-8"))["figures"]
    assert card.table(stored["rows"]) in (ROOT / "docs/doors.md").read_text(encoding="utf-8")
    assert {(one["knob"], one["value"]) for one in stored["rows"]} == {
        (knob, value) for knob, values in card.KNOBS.items() for value in values
    }
    assert all(one["oracle"]["solved"] == 1.0 for one in stored["rows"])
    assert {one["who"] for one in stored["published"]} >= {"GPT-5.4"}
