"""The tables on the page of skills are what is stored."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

import pytest

from benchmarks import gate, gate_cost, gate_engineers, gate_rivals, gate_training, reading
from benchmarks._record import RESULTS
from envtuning.studies.intervals import t_mean

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "skills.md").read_text(encoding="utf-8")
STUDIES = json.loads((RESULTS / "gate.json").read_text(encoding="utf-8"))["figures"]["studies"]
OPEN = ("even", "shares", "warm-up", "blocks", "searched")
NUMBERS = {5: "five"}
COST, TRAINING = (
    json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["figures"]
    for name in ("gate_cost", "gate_training")
)


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


PLAYED = json.loads((RESULTS / "gate_engineers.json").read_text(encoding="utf-8"))["figures"]
ENGINEERS = PLAYED["arms"]


@pytest.mark.parametrize("engineer", ENGINEERS)
def test_an_engineers_row_is_what_is_stored(engineer):
    assert gate_engineers.line(engineer, ENGINEERS[engineer]) in PAGE


@pytest.mark.parametrize("variant", gate.VARIANTS)
def test_readers_row_in_each_variant_is_what_is_stored(variant):
    assert gate_engineers.line_of_variant(variant, PLAYED["everywhere"][variant]) in PAGE


def test_in_how_many_variants_reader_gains():
    rows = [found["reader"] for found in PLAYED["everywhere"].values()]
    assert all(row["over_best_open_loop"]["mean"] > 0 for row in rows)
    assert sum(row["bound"] > 0 for row in rows) == 7


def test_the_pages_on_reading_say_what_reader_gains_on_the_transformer():
    reader = ENGINEERS["reader"]
    assert reader["bound"] > 0
    assert all(ENGINEERS[control]["over_best_open_loop"]["high"] < 0 for control in ("permuted", "average"))
    below = f"{-100 * ENGINEERS['permuted']['over_best_open_loop']['mean']:.1f} points"
    text = " ".join((ROOT / "docs" / "reading.md").read_text(encoding="utf-8").split())
    assert f"{over(reader)} points above" in text
    assert f"{below} below" in text


def test_the_readme_has_the_arms_on_the_text_tasks():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = reading.lines_of_tasks()
    assert "\n".join(rows) in readme
    best = max(OPEN, key=lambda arm: reading.arms_on_tasks("gate")[arm]["success"])
    assert best == "searched", "the row of the best fixed schedule names it"
    rules = ("failure-share", "give-up", "learning-progress", "learnability")
    assert max(rules, key=lambda rule: ENGINEERS[rule]["success"]) == "give-up", (
        "the row of the best simple rule names it"
    )
    assert TRAINING["arms"]["give-up"]["success"] > TRAINING["arms"]["learnability"]["success"]
    headline = " ".join(readme.split("## Install", 1)[0].split())
    reader, rule = (100 * TRAINING["arms"][arm]["over_best_open_loop"]["mean"] for arm in ("reader", "read-once"))
    right = percent(TRAINING["arms"]["reader"])
    assert (
        f"{right} % of the test questions are answered right in the end, {reader:.1f} points above the best of {NUMBERS[len(OPEN)]} fixed"
        in headline
    )
    assert f"ends {rule:.1f} points above that schedule" in headline
    gains = [found["reader"]["over_best_open_loop"]["mean"] for found in TRAINING["everywhere"].values()]
    least, most, middle = (100 * part(gains) for part in (min, max, median))
    assert (
        f"in all twelve from the successes in training ({least:+.1f} to {most:+.1f} points, the median is {middle:+.1f}), with a lower bound above zero in nine"
        in readme
    )
    assert f"in all twelve variants** ({least:+.1f} to {most:+.1f} points, the median is {middle:+.1f})" in " ".join(
        PAGE.split()
    )
    assert sum(found["reader"]["bound"] > 0 for found in TRAINING["everywhere"].values()) == 9
    rule = [found["read-once"]["over_best_open_loop"]["mean"] for found in TRAINING["everywhere"].values()]
    assert sum(gain < 0 for gain in rule) == 6
    assert f"`read-once` ends between {100 * min(rule):+.1f} and {100 * max(rule):+.1f} points" in " ".join(
        PAGE.split()
    )


@pytest.mark.parametrize("variant", gate.VARIANTS)
def test_the_row_of_the_successes_in_training_in_each_variant_is_what_is_stored(variant):
    assert gate_training.line_of_variant(variant, TRAINING["everywhere"][variant]) in PAGE


def test_what_reader_gains_if_reports_are_charged_is_what_is_stored():
    rows = {(row["arm"], row["charge"]): row for row in COST["rows"]}
    assert all(gate_cost.line(row) in PAGE for row in rows.values())
    assert rows["reader", "by compute"]["bound"] < 0 < rows["reader", "by compute"]["over_best_open_loop"]["high"]
    assert rows["reader", "by question"]["over_best_open_loop"]["high"] < 0
    assert all(rows["read-once", charge]["bound"] > 0 for charge in gate_cost.CHARGES)
    assert rows["read-once", "by compute"]["cases"] * gate.SLOW.slices == 240
    asked, trained = 50 * gate.SLOW.slices, gate.SLOW.updates * gate.SLOW.batch
    assert f"a stage trains on {trained} questions, and a report with 50 cases of each task asks {asked:,}" in " ".join(
        PAGE.split()
    )


def test_what_reader_gains_from_the_successes_in_training_is_what_is_stored():
    arms = TRAINING["arms"]
    assert all(gate_engineers.line(name, row) in PAGE for name, row in arms.items())
    assert arms["reader"]["bound"] > 0
    assert arms["permuted"]["over_best_open_loop"]["high"] < 0
    assert all(arms[rule]["over_best_open_loop"]["mean"] < 0 for rule in ("give-up", "learnability"))
    pairs = zip(arms["reader"]["per_root"], arms["read-once"]["per_root"], strict=True)
    between = t_mean([ours - theirs for ours, theirs in pairs])
    said = f"{100 * between.mean:+.1f} ({100 * between.low:+.1f}, {100 * between.high:+.1f}) points above"
    control = -100 * arms["permuted"]["over_best_open_loop"]["mean"]
    for page in ("README.md", "docs/skills.md"):
        assert said in " ".join((ROOT / page).read_text(encoding="utf-8").split()), page
    for page in ("docs/reading.md", "docs/skills.md", "docs/reader.md"):
        text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
        assert (
            f"{over(arms['reader'])} points above the best open loop" in text
            or f"{over(arms['reader'])} points above that arm" in text
        )
    assert f"its control {control:.1f} points below" in " ".join(
        (ROOT / "docs/reading.md").read_text(encoding="utf-8").split()
    )
    paid = {row["charge"]: row for row in COST["rows"] if row["arm"] == "reader"}["by compute"]
    assert f"it ends {over(paid)} points above" in " ".join(
        (ROOT / "docs/reading.md").read_text(encoding="utf-8").split()
    )


def percent(row):
    return f"{100 * row['success']:.1f}"


def over(row):
    mean, low, high = (100 * row["over_best_open_loop"][part] for part in ("mean", "low", "high"))
    return f"{mean:+.1f} ({low:+.1f}, {high:+.1f})"


def test_the_search_made_again_finds_the_stored_rival():
    stored = json.loads((RESULTS / "gate_search.json").read_text(encoding="utf-8"))
    settings = stored["figures"]["settings"]
    first, second, third, *_ = settings
    assert (first["arm"], *first["config"]) == ("blocks", *gate.SEARCHED["searched"][1][0])
    [even] = [row for row in settings if row["arm"] == "even"]
    ends = [f"{100 * row['success']:.1f} %" for row in (first, second, third, even)]
    text = " ".join(PAGE.split())
    assert f"{len(settings)} open loops on four other roots" in text
    assert f"in {stored['cpu_minutes']} minutes of CPU" in text
    assert f"ends highest, at {ends[0]}" in text
    assert f"({ends[1]}) and half of the tasks in four of six stages ({ends[2]}); even draws end at {ends[3]}" in text


def points(pair: str) -> str:
    found = PLAYED["differences"][pair]
    return f"{100 * found['mean']:+.1f} ({100 * found['low']:+.1f}, {100 * found['high']:+.1f})"


def test_a_checkpoints_own_entropy_is_told_as_it_was_measured():
    text = " ".join(PAGE.split())
    for other in ("base", "even", "failure-share", "checkpoint-permuted"):
        assert points(f"checkpoint - {other}") in text
    assert PLAYED["differences"]["checkpoint - base"]["high"] < 0
    papers = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    assert f"it ends {points('checkpoint - base')} points from the same rule with the base's entropy" in papers
    reader = ENGINEERS["reader-checkpoint"]["over_best_open_loop"]
    assert f"it ends {100 * reader['mean']:+.1f} points from the best open loop" in text
    assert reader["low"] < 0 < reader["high"]
    assert f"it ends {-100 * PLAYED['differences']['reader-checkpoint - reader']['mean']:.1f} points higher" in text


def test_the_simple_rules_have_the_floors_that_the_page_says():
    floors = PLAYED["floors"]
    assert {name: floors[name] for name in ("failure-share", "give-up", "learning-progress", "learnability")} == {
        "failure-share": 0.8, "give-up": 0.8, "learning-progress": 0.6, "learnability": 0.8,
    }  # fmt: skip
    assert floors["checkpoint-permuted"] == 0


def test_how_much_budget_reader_saves():
    def best_open_loop(variant):
        arms = gate_engineers.stored(gate.VARIANTS[variant], gate.DEVELOP)
        return max(arms[name]["success"] for name in gate.OPEN)

    assert gate.VARIANTS["codes-long"].root == gate.VARIANTS["codes-slow"].root
    assert gate.VARIANTS["codes-long"].updates == 2 * gate.VARIANTS["codes-slow"].updates
    once, twice = best_open_loop("codes-slow"), best_open_loop("codes-long")
    needed = 1 + (PLAYED["everywhere"]["codes-slow"]["reader"]["success"] - once) / (twice - once)
    assert f"the best open loop needs {needed:.1f} times the budget" in " ".join(PAGE.split())


RIVALS = json.loads((RESULTS / "gate_rivals.json").read_text(encoding="utf-8"))["figures"]


@pytest.mark.parametrize("rival", RIVALS["arms"])
def test_a_rivals_row_is_what_is_stored(rival):
    assert gate_rivals.row_of(rival, RIVALS["arms"][rival], RIVALS["reader_minus"][rival]) in PAGE


def test_half_of_readers_gain_takes_one_report_and_reader_is_above_both_rules():
    once = RIVALS["arms"]["read-once"]
    assert once["bound"] > 0
    assert once["over_best_open_loop"]["mean"] == pytest.approx(
        ENGINEERS["reader"]["over_best_open_loop"]["mean"] / 2, abs=0.005
    )
    assert all(RIVALS["reader_minus"][rule]["bound"] > 0 for rule in ("read-once", "in-turn"))
    assert all(RIVALS["arms"][belief]["bound"] > 0 for belief in ("slower", "quicker"))
    assert f"{over(once)} points above" in " ".join((ROOT / "docs" / "reading.md").read_text(encoding="utf-8").split())
