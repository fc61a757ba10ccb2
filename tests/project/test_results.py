"""What the pages claim is what is stored."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from statistics import fmean, stdev

import pytest

from benchmarks import reading
from benchmarks._points import in_points
from benchmarks._record import RESULTS
from benchmarks.readme import PAGE, page
from benchmarks.store import HERE, from_stored
from engineers.plain.growth import prior
from engineers.plain.reader import DOSES
from envtuning.studies.compare import markdown
from envtuning.studies.intervals import Interval, half_width, t_mean
from envtuning.studies.preregistered import load_study

README = Path(__file__).parents[2] / "README.md"
READER = " ".join((README.parent / "docs" / "default.md").read_text(encoding="utf-8").replace("**", "").split())


def says(words: str) -> bool:
    """Whether the page of the reader says so; "…" stands for words that may change."""
    return re.search(".{0,120}?".join(map(re.escape, words.split("…"))), READER) is not None


def test_the_page_of_results_is_made_from_the_results():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m benchmarks.readme`"


@pytest.mark.parametrize("path", sorted(RESULTS.glob("study_*.json")), ids=lambda path: path.stem)
def test_a_stored_study_is_what_its_outcomes_give_and_has_its_headroom_line(path):
    study = load_study(HERE / f"{path.stem.removeprefix('study_')}.yaml")
    figures = json.loads(path.read_text(encoding="utf-8"))["figures"]
    figures["runs"] = [{"curve": [], "tests": 0.0} | run for run in figures["runs"]]  # stored before these were kept
    figures["rows"] = [{"tests": 0.0} | row for row in figures["rows"]]
    summary = from_stored(study)
    assert json.loads(json.dumps(asdict(summary))) == {name: figures[name] for name in asdict(summary)}
    text = path.with_suffix(".md").read_text(encoding="utf-8")
    assert text == markdown(summary), f"run `python -m benchmarks.store {study.name} --redraw`"
    assert text.count("Closed-loop headroom: ") == 1


def test_what_the_page_says_of_the_reader_s_beliefs_and_doses():
    assert says(f"{len(prior().weight)} learning curves")
    assert says(f"each of {len(DOSES)} doses")


@pytest.mark.parametrize("target", reading.TARGETS)
def test_what_reading_is_worth_is_from_the_stored_runs(target):
    page = (README.parent / "docs" / "reading.md").read_text(encoding="utf-8")
    assert f"{reading.line(target)} {reading.bound(target)} |\n" in page


def test_the_page_on_reading_has_every_arm():
    text = (README.parent / "docs" / "reading.md").read_text(encoding="utf-8")
    assert "\n".join(reading.table_of_arms()) in text
    success = reading.success_of(reading.TARGETS["small-corridors"])
    for arm in ("near-uniform", "mixture"):
        assert f"{100 * (fmean(success[arm]) - fmean(success['uniform'])):.1f} points" in text
    assert f"ends at {reading.percent(reading.success_of(reading.TARGETS['three-agents'])['ladder'])} %" in text


def test_rounds_as_in_the_paper_stand_as_a_null():
    success = reading.success_of(reading.TARGETS["engineer"])
    found = reading.over_open_loop(success)
    text = (README.parent / "docs" / "papers.md").read_text(encoding="utf-8").replace("−", "-")
    ends = f"`rules` ends {100 * found.mean:+.1f} points from"
    assert (
        f"{ends} the best of six arms that read nothing of their own run, with a one-sided 95 % bound of {100 * found.low:+.1f}"
        in text
    )
    assert len([arm for arm in success if arm in reading.OPEN_LOOP]) == 6
    assert len(success) == 7
    means = [100 * fmean(arm) for arm in success.values()]
    assert f"solves {min(means):.0f} to {max(means):.0f} % of it" in text


def test_no_target_shows_that_reading_pays():
    """The README's headline says so; where a bound comes above zero, the headline has to change."""
    for target, result in reading.TARGETS.items():
        assert reading.over_open_loop(reading.success_of(result)).low <= 0, target


def test_the_headline_compares_rules_with_a_mixture_and_calls_the_difference_noise():
    success = reading.success_of(reading.TARGETS["small-corridors"])
    headline = " ".join(README.read_text(encoding="utf-8").split("## Install", 1)[0].split())
    for arm in ("rules", "mixture"):
        assert f"{100 * fmean(success[arm]):.1f} %" in headline
    gain = t_mean([rules - mixed for rules, mixed in zip(success["rules"], success["mixture"], strict=True)])
    assert gain.low < 0 < gain.high
    said = f"{100 * gain.mean:+.1f} points ({100 * gain.low:+.1f}, {100 * gain.high:+.1f}) is within the noise"
    assert said in headline


@pytest.mark.parametrize("study", ["corridors", "small-corridors"])
def test_every_engineer_that_needs_no_model_lies_above_uniform_draws(study):
    figures = json.loads((RESULTS / f"study_{study}.json").read_text(encoding="utf-8"))["figures"]
    arms = {row["arm"]: row["against"] for row in figures["rows"]}
    for arm in ("rules", "progress-share", "half-success"):
        assert arms[arm]["uniform"]["low"] > 0


def seeds_for(deviation: float, half: float) -> int:
    """The least n for which the interval of a mean is ± ``half`` at most, by the spread that a pilot had."""
    return next(n for n in range(2, 10_000) if half_width(deviation, n) <= half)


def test_the_pilot_named_in_a_preregistration_is_the_stored_search():
    figures = json.loads((RESULTS / "search_schedule_small-corridors.json").read_text(encoding="utf-8"))["figures"]
    rates = [row["validation"] for row in figures["schedules"] if len(row["validation"]) == 5]
    pairs = combinations(rates, 2)
    widest = max(stdev([one - other for one, other in zip(*pair, strict=True)]) for pair in pairs)
    pilot = load_study(HERE / "small-corridors.yaml").pilot
    assert f"at most {100 * widest:.1f} points" in pilot
    assert f"±5 points would take n = {seeds_for(widest, 0.05)}" in pilot


def test_the_claim_about_somebodys_own_world_is_the_stored_study():
    figures = json.loads((RESULTS / "study_own-world.json").read_text(encoding="utf-8"))["figures"]
    text = (README.parent / "docs" / "worlds.md").read_text(encoding="utf-8")
    success = {row["arm"]: row["success"]["mean"] for row in figures["rows"]}
    assert success["uniform"] == success["fixed"] == 0.0
    for arm in ("rules", "target-only"):
        assert f"{100 * success[arm]:.1f} %" in text


def test_on_mountaincar_the_same_seed_ends_at_nothing():
    success = reading.success_of(reading.TARGETS["MountainCar"])
    failed = [[place for place, rate in enumerate(success[arm]) if rate == 0.0] for arm in ("rules", "target-only")]
    assert failed[0] == failed[1]
    assert len(failed[0]) == 1


def test_what_the_page_on_reading_says_of_rewards_is_stored():
    figures = json.loads((RESULTS / "exam_table.json").read_text(encoding="utf-8"))["figures"]
    found = figures["opened"]["rising"]["families"]["by-reward"]["over_open_loop"]
    text = " ".join((README.parent / "docs" / "reading.md").read_text(encoding="utf-8").split())
    assert f"By reward, `rising` gains {in_points(found)} points in the exam" in text
    assert found["low"] > 0


def test_all_arms_of_six_tasks_pay_for_the_same_tests():
    figures = json.loads((RESULTS / "study_six-tasks.json").read_text(encoding="utf-8"))["figures"]
    [share] = {run["spent"]["episodes"] / run["spent"]["samples"] for run in figures["runs"]}
    text = " ".join((README.parent / "docs" / "reading.md").read_text(encoding="utf-8").split())
    assert f"pay for the same tests, {100 * share:.1f} % of the budget" in text


def test_six_tasks_in_the_loop_stand_as_a_null():
    figures = json.loads((RESULTS / "study_six-tasks.json").read_text(encoding="utf-8"))["figures"]
    over = {row["arm"]: Interval(**row["against"]["fixed"]) for row in figures["rows"] if row["arm"] != "fixed"}
    assert over["reader"].low < 0 < over["reader"].high
    assert over["reader-permuted"].high < 0
    assert not any(found.low > 0 for found in over.values()), "the page says that no engineer ended above even draws"
    text = " ".join((README.parent / "docs" / "reading.md").read_text(encoding="utf-8").split())
    said = {arm: found.percent(signed=True) for arm, found in over.items()}
    assert f"`reader` ends {said['reader']} points from `fixed`" in text
    assert f"`give-up` {said['give-up']}" in text
    assert f"`permuted/reader` ends {said['reader-permuted']} points from it" in text


@pytest.mark.parametrize("target", ["small-corridors", "corridors", "three-agents"])
def test_on_lakes_every_run_of_reader_ends_where_that_of_rules_does(target):
    success = reading.success_of(f"study_{target}-readers")
    assert len(success["reader"]) == (6 if target == "three-agents" else 10)
    assert success["reader"] == success["rules"]
