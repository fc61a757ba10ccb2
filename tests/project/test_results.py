"""What the pages claim is what is stored."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from statistics import stdev

import pytest

from benchmarks._record import RESULTS
from benchmarks.readme import PAGE, page
from benchmarks.study import HERE
from envtuning.studies.intervals import Interval, seeds_for
from envtuning.studies.preregistered import load_study
from envtuning.studies.summary import said

README = Path(__file__).parents[2] / "README.md"


def test_the_page_of_results_is_made_from_the_results():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m benchmarks.readme`"


def test_the_claim_about_engineers_is_the_stored_study():
    figures = json.loads((RESULTS / "study_small-corridors.json").read_text(encoding="utf-8"))["figures"]
    rules = next(row for row in figures["rows"] if row["arm"] == "rules")
    paired = rules["against"]["uniform"]
    text = " ".join(README.read_text(encoding="utf-8").split())
    assert f"{said(Interval(**paired['difference']), signed=True)} points" in text
    arms = {row["arm"]: row for row in figures["rows"]}
    (wins,) = {arms[arm]["against"]["uniform"]["wins"] for arm in ("rules", "progress-share", "half-success")}
    assert f"each of them on {wins} of the {len(figures['preregistered_seeds'])} preregistered seeds" in text
    assert all(row["seeds"] == len(figures["preregistered_seeds"]) for row in arms.values())
    for arm in ("uniform", "target-only", "rules"):
        assert f"{100 * arms[arm]['success']['mean']:.1f} %" in text
    for arm in ("progress-share", "half-success"):
        assert f"{100 * arms[arm]['against']['uniform']['difference']['mean']:+.1f}" in text
    assert f"{100 * figures['headroom']['mean']:.1f} points above the better of them" in text
    for further in ("one more agent", "one more size", "three quarters of the waits"):
        reached = {arm: figures["beyond"][arm][further]["mean"] for arm in arms}
        assert reached["rules"] > max(reached["progress-share"], reached["half-success"]) > reached["uniform"]


def test_the_claim_about_the_second_target_is_the_stored_study():
    figures = json.loads((RESULTS / "study_corridors.json").read_text(encoding="utf-8"))["figures"]
    rules = next(row for row in figures["rows"] if row["arm"] == "rules")
    paired = rules["against"]["uniform"]
    text = " ".join(README.read_text(encoding="utf-8").split())
    assert (
        f"On the larger `corridors`, ten seeds again, `rules` ends above uniform draws by {said(Interval(**paired['difference']), signed=True)}"
        in text
    )
    assert {row["seeds"] for row in figures["rows"]} == {len(figures["preregistered_seeds"])} == {10}
    arms = {row["arm"]: row for row in figures["rows"]}
    for arm in ("progress-share", "half-success"):
        assert f"`{arm}` by {100 * arms[arm]['against']['uniform']['difference']['mean']:+.1f}" in text


def test_the_claim_about_three_agents_is_the_stored_study():
    figures = json.loads((RESULTS / "study_three-agents.json").read_text(encoding="utf-8"))["figures"]
    assert {row["seeds"] for row in figures["rows"]} == {len(figures["preregistered_seeds"])} == {10}
    text = " ".join(README.read_text(encoding="utf-8").split())
    arms = {row["arm"]: row for row in figures["rows"]}
    for arm in ("uniform", "rules", "half-success", "searched", "ladder", "progress-share"):
        assert f"{100 * arms[arm]['success']['mean']:.1f} %" in text, arm
    for arm in ("rules", "half-success"):
        paired = arms[arm]["against"]["uniform"]
        assert min(paired["difference"]["low"], paired["with_cases"]["low"]) > 0
        assert f"{said(Interval(**paired['difference']), signed=True)}" in text
        assert arms[arm]["ignited"] == 1.0
    for arm in ("progress-share", "ladder"):
        assert arms[arm]["success"]["mean"] < arms["uniform"]["success"]["mean"]


@pytest.mark.parametrize("study", ["corridors", "small-corridors"])
def test_every_engineer_that_needs_no_model_lies_above_uniform_draws(study):
    figures = json.loads((RESULTS / f"study_{study}.json").read_text(encoding="utf-8"))["figures"]
    arms = {row["arm"]: row["against"] for row in figures["rows"]}
    for arm in ("rules", "progress-share", "half-success"):
        pair = arms[arm]["uniform"]
        assert min(pair["difference"]["low"], pair["with_cases"]["low"]) > 0


def test_the_pilot_named_in_a_preregistration_is_the_stored_search():
    figures = json.loads((RESULTS / "search_schedule_small-corridors.json").read_text(encoding="utf-8"))["figures"]
    rates = [row["validation"] for row in figures["schedules"] if len(row["validation"]) == 5]
    pairs = combinations(rates, 2)
    widest = max(stdev([one - other for one, other in zip(*pair, strict=True)]) for pair in pairs)
    pilot = load_study(HERE / "small-corridors.yaml").pilot
    assert f"at most {100 * widest:.1f} points" in pilot
    assert f"±5 points would take n = {seeds_for(widest, 0.05)}" in pilot


def test_the_claim_about_replay_of_single_boards_is_the_stored_study():
    figures = json.loads((RESULTS / "study_small-corridors-levels.json").read_text(encoding="utf-8"))["figures"]
    rows = {row["arm"]: row for row in figures["rows"]}
    text = (README.parent / "docs" / "training.md").read_text(encoding="utf-8").replace("−", "-")
    for arm in ("uniform-regret", "uniform-value-loss", "uniform-learnability"):
        gain = rows[arm]["against"]["uniform"]["difference"]
        assert gain["low"] < 0 < gain["high"]
        assert f"{100 * gain['mean']:+.1f} ({100 * gain['low']:+.1f}, {100 * gain['high']:+.1f})" in text
    for arm in ("rules", "rules-regret", "target-only", "target-only-regret"):
        assert f"{100 * rows[arm]['success']['mean']:.1f} %" in text


def test_the_claim_about_somebodys_own_world_is_the_stored_study():
    figures = json.loads((RESULTS / "study_own-world.json").read_text(encoding="utf-8"))["figures"]
    text = (README.parent / "docs" / "worlds.md").read_text(encoding="utf-8")
    success = {row["arm"]: row["success"]["mean"] for row in figures["rows"]}
    assert success["uniform"] == success["fixed"] == 0.0
    for arm in ("rules", "target-only"):
        assert f"{100 * success[arm]:.1f} %" in text
