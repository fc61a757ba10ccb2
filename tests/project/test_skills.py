"""The tables on the page of skills are what is stored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "skills.md").read_text(encoding="utf-8")
STUDIES = json.loads((ROOT / "benchmarks" / "results" / "gate.json").read_text(encoding="utf-8"))["figures"]["studies"]
OPEN = ("even", "shares", "warm-up", "blocks", "searched")


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: f"{study['variant']['name']}-{len(study['roots'])}")
def test_a_row_is_what_is_stored(study):
    arms = study["arms"]
    best = max((arm for arm in OPEN if arm in arms), key=lambda arm: arms[arm]["success"])
    cells = [f"`{study['variant']['name']}`", percent(arms["even"]), f"{percent(arms[best])} (`{best}`)"]
    cells += [percent(arms["oracle"]), over(arms["oracle"]), f"{100 * arms['oracle']['lower_bound']:+.1f}"]
    cells += [over(arms[arm]) for arm in ("failure", "give-up", "cases", "permuted", "average") if arm in arms]
    assert f"| {' | '.join(cells)} |" in PAGE


def test_the_fresh_roots_have_two_training_seeds_and_both_controls():
    [fresh] = [study for study in STUDIES if len(study["roots"]) == 16]
    assert fresh["training_seeds"] == 2
    assert fresh["arms"].keys() >= {"permuted", "average"}


def percent(row):
    return f"{100 * row['success']:.1f}"


def over(row):
    mean, low, high = (100 * row["over_best_open_loop"][part] for part in ("mean", "low", "high"))
    return f"{mean:+.1f} ({low:+.1f}, {high:+.1f})"
