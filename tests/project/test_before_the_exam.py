"""What the pages say of earlier versions, from before there was the exam, is what these stored."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from benchmarks import reading
from benchmarks._points import in_points
from benchmarks._record import RESULTS
from envtuning.studies.intervals import t_mean

ROOT = Path(__file__).parents[2]
OPEN = ("even", "shares", "warm-up", "blocks", "searched")
RULES = ("failure-share", "give-up", "learning-progress", "learnability")


def text_of(page: str) -> str:
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


def stored(result: str) -> dict[str, Any]:
    return json.loads((RESULTS / f"{result}.json").read_text(encoding="utf-8"))


SECTION = text_of("docs/reading.md").partition("## Before the exam")[2]
ENGINEERS, TRAINING = (stored(result)["figures"]["arms"] for result in ("gate_engineers", "gate_training"))
COST = {(row["arm"], row["charge"]): row for row in stored("gate_cost")["figures"]["rows"]}
EVERYWHERE = stored("gate_training")["figures"]["everywhere"].values()  # the twelve variants


def over(arm: dict[str, Any]) -> str:
    return in_points(arm["over_best_open_loop"])


def below(arm: dict[str, Any]) -> str:
    return f"{-100 * arm['over_best_open_loop']['mean']:.1f} points below"


def gains(arm: str) -> list[float]:
    """In each variant."""
    return [found[arm]["over_best_open_loop"]["mean"] for found in EVERYWHERE]


@pytest.mark.parametrize("result", ["gate", "gate_engineers", "gate_cost", "gate_training", "reader"])
def test_the_section_names_the_commit_that_made_each_figure(result):
    assert f"- `{stored(result)['commit']}` ([{result}](../benchmarks/results/{result}.json))" in SECTION


def test_the_family_has_sixteen_roots_with_two_trainings_each():
    [fresh] = [study for study in stored("gate")["figures"]["studies"] if len(study["roots"]) == reading.FRESH]
    assert (fresh["variant"]["name"], fresh["training_seeds"], reading.FRESH) == ("codes-slow", 2, 16)
    assert len(EVERYWHERE) == 12


def test_the_section_has_the_stored_gains():
    arms = reading.arms_on_tasks("gate")
    best = max(OPEN, key=lambda arm: arms[arm]["success"])
    assert f"ended at {100 * arms[best]['success']:.1f} %" in SECTION
    for arm in ("oracle", "cases"):
        pairs = zip(arms[arm]["per_root"], arms[best]["per_root"], strict=True)
        found = asdict(t_mean([ours - theirs for ours, theirs in pairs]))
        assert f"gains {in_points(found)}" in SECTION
    assert f"`reader` gains {over(ENGINEERS['reader'])} from free tests" in SECTION
    assert below(ENGINEERS["permuted"]) in SECTION
    assert f"it gains {over(COST['reader', 'by compute'])}" in SECTION
    assert f"it gains {over(TRAINING['reader'])}, and its control ends {below(TRAINING['permuted'])}" in SECTION
    assert f"A rule that reads only the first stage gains {over(TRAINING['read-once'])}" in SECTION


def test_the_signs_that_the_pages_state_are_those_that_were_stored():
    assert ENGINEERS["reader"]["bound"] > 0
    assert TRAINING["reader"]["bound"] > 0
    for arm in (ENGINEERS["permuted"], ENGINEERS["average"], TRAINING["permuted"]):
        assert arm["over_best_open_loop"]["high"] < 0
    assert COST["reader", "by compute"]["bound"] < 0, "no measurable gain is left"
    assert min(gains("reader")) > 0
    assert sum(found["reader"]["bound"] > 0 for found in EVERYWHERE) == 9
    assert sum(gain < 0 for gain in gains("read-once")) == 6


def test_the_section_has_the_arms_on_the_text_tasks():
    assert "\n".join(reading.lines_of_tasks()) in (ROOT / "docs/reading.md").read_text(encoding="utf-8")
    arms = reading.arms_on_tasks("gate")
    assert max(OPEN, key=lambda arm: arms[arm]["success"]) == "searched", "the best of five fixed schedules"
    assert max(RULES, key=lambda rule: ENGINEERS[rule]["success"]) == "give-up", "the known rule of the table"


def test_what_is_said_of_simulated_learners_is_stored():
    figures = stored("reader")["figures"]
    said = {rival: in_points(found) for rival, found in figures["over_all_families"].items()}
    page = text_of("docs/default.md")
    assert all(f"{said[rival]} points above" in page for rival in ("best open loop", "failure, focused"))
    assert said["best open loop"] in SECTION
    below_it = [study["family"] for study in figures["studies"] if study["beyond"]["failure, focused"]["mean"] < -0.01]
    assert below_it == ["transfer+causes"]
    [study] = [study for study in figures["studies"] if study["family"] in below_it]
    lost = -100 * fmean(study["gains"]["failure, focused"])
    assert f"in one family {lost:.1f} points below it (commit `{stored('reader')['commit']}`)" in text_of(
        "docs/default.md"
    )


def test_a_checkpoint_s_own_entropy_is_told_as_it_was_measured():
    found = stored("gate_engineers")["figures"]["differences"]["checkpoint - base"]
    papers = text_of("docs/papers.md")
    assert f"it ends {in_points(found)} points from the same rule with the base's entropy" in papers
    assert found["high"] < 0


def test_a_page_names_every_stored_result_that_no_script_makes_any_more():
    pages = " ".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md"))
    for path in RESULTS.glob("*.json"):
        module = re.match(
            r"python -m benchmarks\.(gate\w*|readers?)\b", json.loads(path.read_text(encoding="utf-8"))["command"]
        )
        assert module is None or f"results/{path.name}" in pages, path.name
