"""How ``benchmarks.safety`` decides, and that its worlds have easy, hard and impossible tasks that can be drawn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import safety
from benchmarks._points import in_points
from benchmarks._record import RESULTS
from benchmarks.safety import Found, verdict
from engineers.registry import DEFAULT_ENGINEER
from engineers.shared import own
from envtuning.studies.study import raise_unless_comparable

EVEN = [0.5] * 10
PAGE = Path(__file__).parents[2] / "docs" / "default.md"


def alternating(middle: float, aside: float) -> list[float]:
    return [middle + aside * (-1) ** at for at in range(10)]


@pytest.mark.parametrize(
    ("over", "safe", "unsafe"),
    [
        (alternating(0.0, 0.01), True, False),
        (alternating(0.0, 0.2), False, False),  # undecided: a ground needs more seeds
        (alternating(-0.1, 0.01), False, True),
    ],
)
def test_a_ground_is_decided_by_the_bound(over: list[float], safe: bool, unsafe: bool):
    found = Found(EVEN, over, [])
    assert (found.safe(-1.0), found.unsafe(-1.0)) == (safe, unsafe)


def test_a_single_bad_seed_or_a_task_given_up_is_enough():
    steady = alternating(0.05, 0.01)
    assert Found(EVEN, steady, []).safe(-0.1)
    assert Found(EVEN, [*steady[:-1], -0.11], []).unsafe(-0.1)
    assert Found(EVEN, steady, [3]).unsafe(-0.1)


def test_how_often_even_draws_lie_apart_counts_ordered_pairs():
    assert safety.apart([0.9, 0.7, 0.65], 0.1) == 2 / 6  # .7 and .65 below .9
    assert safety.apart([0.9, 0.9], 0.1) == 0


def test_a_bad_seed_does_not_end_the_count_before_the_ground_has_enough():
    def ends(engineer: str, seeds: range) -> list[float]:
        return [0.5 if engineer == "uniform" or seed else 0.3 for seed in seeds]

    told = safety.decided(safety.Ground("any", ends, enough=30, worst=-0.1), "reader", 40)
    assert (told["seeds"], told["verdict"]) == (30, "not safe")


def test_ground_by_ground_ten_seeds_are_added_while_nothing_is_shown():
    asked = []

    def ends(engineer: str, seeds: range) -> list[float]:
        asked.append((engineer, len(seeds)))
        noise = alternating(0.0, 0.2) if len(seeds) == 10 else [0.0] * len(seeds)
        return EVEN * (len(seeds) // 10) if engineer == "uniform" else [0.5 + one for one in noise]

    told = safety.decided(safety.Ground("any", ends), "reader", 40)
    assert (told["seeds"], told["verdict"]) == (20, "safe")
    assert asked == [("uniform", 10), ("reader", 10), ("uniform", 20), ("reader", 20)]


@pytest.mark.parametrize("name", safety.TEXTS)
def test_the_worlds_of_text_can_be_drawn(name: str):
    own.trust(safety.TRUSTED)
    spec = safety.text_spec(name)
    assert spec.suites.last_alone
    raise_unless_comparable({"uniform": spec})


@pytest.mark.parametrize(
    ("result", "engineer"), [("safety", "steady"), ("safety_lakes", "steady"), ("safety_reader", "reader")]
)
def test_the_page_has_the_stored_table_and_the_verdicts_follow_from_the_seeds(result: str, engineer: str):
    figures = json.loads((RESULTS / f"{result}.json").read_bytes())["figures"]["engineers"][engineer]
    page = PAGE.read_text(encoding="utf-8")
    rules = {ground.name: ground for ground in [*safety.grounds(), *map(safety.preset, safety.LAKES_BY_NAME)]}
    for name, told in figures.items():
        assert safety.line(name, told) in page
        found = Found([], told["per_seed"], told["given_up"])
        assert told["verdict"] == verdict(found, rules[name])


def test_the_default_engineer_is_safe_on_all_grounds():
    figures = json.loads((RESULTS / "safety.json").read_bytes())["figures"]["engineers"][DEFAULT_ENGINEER]
    assert [name for name, told in figures.items() if told["verdict"] != "safe"] == []
    assert figures.keys() == {ground.name for ground in safety.grounds()}
    assert min(figures["newcomer"]["per_seed"]) > -0.1
    assert not figures["newcomer"]["given_up"]
    assert "shown to be safe on all eighteen grounds" in " ".join(PAGE.read_text(encoding="utf-8").split())


def test_some_grounds_alone_do_not_replace_the_whole_table():
    whole = [ground.name for ground in safety.grounds()]
    assert safety.file_of(safety.ENGINEERS, whole) == "safety"
    assert safety.file_of(safety.ENGINEERS, safety.LAKES_BY_NAME) == "safety_lakes"
    assert safety.file_of(safety.ENGINEERS, whole[:3]) == "safety_steady"
    assert safety.file_of(["reader"], whole) == "safety_reader"


def test_it_is_safe_on_the_presets_of_lakes_that_are_played_by_name():
    figures = json.loads((RESULTS / "safety_lakes.json").read_bytes())["figures"]["engineers"][DEFAULT_ENGINEER]
    assert figures.keys() == set(safety.LAKES_BY_NAME)
    assert {told["verdict"] for told in figures.values()} == {"safe"}


def test_the_page_tells_where_an_earlier_form_lost():
    first = json.loads((RESULTS / "safety_first.json").read_bytes())["figures"]["engineers"]["steady"]["seven-moves"]
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"form ended {in_points(first['over_even'])} points from even draws" in page


def test_what_the_default_engineer_gains_in_the_exam_is_what_is_stored():
    rules = json.loads((RESULTS / "exam_rules.json").read_bytes())["figures"]["families"]
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    gains = {
        arm: [in_points(rules[family]["rows"][f"{arm}, scores"]["over_best_open_loop"]) for family in rules]
        for arm in ("steady", "rising", "reader")
    }
    assert "it ends {} and {} points above the best open loop".format(*gains["steady"]) in page
    assert "`rising` ends at {} and {}, and".format(*gains["rising"]) in page
    assert "`reader` at {} and {}.".format(*gains["reader"]) in page
    held_out = json.loads((RESULTS / "exam_table.json").read_bytes())["figures"]["afterwards"]
    for arm, said in {"steady": "it takes {} of the oracle's gain", "rising": "`rising` takes {}."}.items():
        part = {name: 100 * value for name, value in held_out[f"{arm}, scores"]["part"].items()}
        assert said.format("{mean:.0f} % ({low:.0f}, {high:.0f})".format(**part)) in page
