"""The one table of arms: which arms are set against which, on which seeds, and what its cells say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engineers.tiers import Tier
from envtuning.studies.closed_loop import Gain, best_reader, gain
from envtuning.studies.compare import Comparison, tables
from envtuning.studies.intervals import Interval
from envtuning.studies.outcomes import Outcome
from envtuning.studies.table import Known, cells, drawn, headroom, legend, markdown, rows

KNOWN = {
    "uniform": Known(Tier.NOTHING),
    "target-only": Known(Tier.TARGET),
    "ladder": Known(Tier.FAMILY, 36, warms_up=True),
    "rules": Known(Tier.SLICE_SUCCESS),
    "model": Known(Tier.CASES),
}
RATES = {
    "uniform": {1: 0.1, 2: 0.2, 3: 0.3},
    "target-only": {1: 0.0, 2: 0.0, 3: 0.0},
    "ladder": {1: 0.3, 2: 0.5, 3: 0.4},
    "rules": {1: 0.36, 2: 0.45, 3: 0.5},
    "model": {1: 0.35, 2: 0.5},
}


def outcome(arm, seed, success, **more):
    fields = {
        "others": {"optimal_rate": success / 2}, "first": 0.05, "spent": {"env_steps": 1000}, "ignited_after": None, "tokens": 0,
        "cost": 0.0, "incidents": 0, "fallbacks": 0,
    }  # fmt: skip
    return Outcome(arm, seed, success, **(fields | more))


OUTCOMES = [outcome(arm, seed, rate) for arm, by_seed in RATES.items() for seed, rate in by_seed.items()]


def row_of(arm, outcomes=OUTCOMES, known=KNOWN, baselines=()):
    return next(row for row in rows(outcomes, known, baselines) if row.arm == arm)


def test_an_arm_that_reads_is_set_against_all_that_read_nothing():
    blind = ["uniform", "target-only", "ladder"]
    columns = {arm: list(RATES[arm].values()) for arm in [*blind, "rules"]}
    found = row_of("rules")
    assert found.above_open_loop == gain(columns, "rules", blind)
    assert (found.above_open_loop.above, found.above_open_loop.mean) == ("ladder", pytest.approx(0.11 / 3))
    assert found.above_lower_tiers is None, "the same arms once more"


def test_what_knows_more_is_also_set_against_readers_that_know_less_on_the_seeds_that_all_have():
    found = row_of("model")
    assert (found.above_open_loop.above, found.above_open_loop.seeds) == ("ladder", 2)
    assert (found.above_lower_tiers.above, found.above_lower_tiers.mean) == ("rules", pytest.approx(0.02))


def test_among_arms_that_read_nothing_each_is_set_against_those_that_know_less():
    assert row_of("uniform").above_lower_tiers is None
    assert row_of("target-only").above_lower_tiers.above == "uniform"
    assert row_of("ladder").above_lower_tiers.above == "uniform"
    assert row_of("ladder").above_open_loop is None


def test_headroom_is_of_the_best_reader_and_its_bound_allows_for_the_choice():
    three = [one for one in OUTCOMES if one.arm != "model"]
    columns = {arm: list(by_seed.values()) for arm, by_seed in RATES.items() if arm != "model"}
    blind = ["uniform", "target-only", "ladder"]
    alone = headroom(three, KNOWN)
    assert alone == gain(columns, "rules", blind)
    worse = {"worse": [0.1, 0.1, 0.1]}
    both = best_reader(columns | worse, ["rules", "worse"], blind)
    assert (both.arm, both.mean) == ("rules", alone.mean)
    assert both.low < alone.low
    assert headroom([one for one in OUTCOMES if not KNOWN[one.arm].tier.reads], KNOWN) is None
    assert headroom([one for one in OUTCOMES if KNOWN[one.arm].tier.reads], KNOWN) is None


def test_a_gain_over_arms_that_never_warm_up_is_open():
    clear = [outcome(arm, seed, rate + 0.001 * seed) for arm, rate in (("uniform", 0.1), ("rules", 0.5)) for seed in range(9)]  # fmt: skip
    assert headroom(clear, KNOWN).found == "open"
    warm = [*clear, *(outcome("ladder", seed, 0.2) for seed in range(9))]
    assert headroom(warm, KNOWN).found == "some", (
        "one training seed is enough for an arm that is no choice in hindsight"
    )


def test_differences_to_baselines_are_paired():
    found = row_of("rules", baselines=("uniform", "rules"))
    assert list(found.against) == ["uniform"]
    assert found.against["uniform"].mean == pytest.approx(0.71 / 3)


def test_a_row_adds_up_incidents_and_takes_means_of_the_rest():
    some = {"tokens": 10, "cost": 0.25, "incidents": 2, "fallbacks": 1, "ignited_after": 200}
    more = {"tokens": 30, "cost": 0.75, "incidents": 3, "fallbacks": 3, "spent": {"env_steps": 2000}}
    row = row_of("rules", [outcome("rules", 0, 0.5, **some), outcome("rules", 1, 0.7, **more)])
    assert (row.seeds, row.tokens, row.cost, row.incidents, row.fallbacks) == (2, 20, 0.5, 5, 4)
    assert (row.spent, row.ignited, row.ignited_after) == ({"env_steps": 1500}, 0.5, 200)
    assert (row.success.mean, row.gain.mean) == (pytest.approx(0.6), pytest.approx(0.55))
    assert row.others["optimal_rate"].mean == pytest.approx(0.3)
    assert row_of("rules", [outcome("rules", 0, 0.5, cost=None)]).cost is None


ROW = row_of("rules")
HEADINGS = {"valid_rate": "valid", "optimal_rate": "optimal"}


def test_the_cells_and_columns_without_an_entry():
    above = Gain("rules", "ladder", 0.03, -0.01, 3, 1)
    one = replace(
        ROW, success=Interval(0.5, 0.4, 0.6), others={"optimal_rate": Interval(0.25, None, None)}, gain=Interval(0.1, None, None),
        above_open_loop=above, against={"fixed": Interval(0.05, None, None)}, ignited=2 / 3, ignited_after=12_600.0,
    )  # fmt: skip
    other = replace(one, arm="model", above_open_loop=replace(above, low=None), tokens=12345.6, cost=None, fallbacks=2)
    assert cells([one], HEADINGS, wide=True) == [
        ["arm", "tier", "n", "valid", "optimal", "gain", "− best open loop", "− fixed", "ignited"],
        ["rules", "5", "3", "50.0 ± 10.0", "25.0", "+10.0", "+3.0 (≥ -1.0, ladder)", "+5.0", "67% after 13k"],
    ]
    assert cells([one], HEADINGS, wide=False) == [
        ["arm", "tier", "valid", "optimal", "gain", "− best open loop"],
        ["rules", "5", "50.0 ± 10.0", "25.0", "+10.0", "+3.0 (≥ -1.0, ladder)"],
    ]
    head, _, last = cells([one, other], HEADINGS, wide=False)
    assert head[-3:] == ["tokens", "cost", "fallbacks"]
    assert last[-3:] == ["12,346", "unknown", "2"]
    assert last[head.index("− best open loop")] == "+3.0 (ladder)"


def test_a_page_and_a_terminal_have_the_same_cells():
    lines = cells([ROW], HEADINGS, wide=True)
    page = [line.strip("| ").split(" | ") for line in markdown(lines).splitlines()]
    assert page[0] == lines[0]
    assert page[2] == ["`rules`", *lines[1][1:]]
    shown = drawn(lines, "title", "caption")
    assert [column.header for column in shown.table.columns] == lines[0]
    assert [next(iter(column.cells)) for column in shown.table.columns] == lines[1]


@pytest.mark.parametrize(("best", "remarked"), [(0.049, True), (0.05, False)])
def test_where_nothing_was_learnt_the_table_says_that_it_compares_nothing(best, remarked):
    found = [replace(ROW, success=Interval(rate, None, None)) for rate in (0.0, best)]
    caption = tables(
        Comparison("mine", HEADINGS, 1, "tokens", None, found, [], "mine", "", (0,), None, "", {}, {}, {})
    )[0].table.caption
    assert ("None reaches 5%" in caption) == remarked


def test_the_line_below_says_which_bound_is_one_sided():
    """An arm may have both: +3.7 (≥ -2.1, ladder) and +20.3 ± 11.9."""
    found = rows(OUTCOMES, KNOWN, ["uniform"])
    lines = cells(found, {"success_rate": "success", "optimal_rate": "optimal"}, wide=True)
    said = legend(lines, found)
    assert "±: two-sided 95 % intervals" in said
    assert "≥: its one-sided 95 % lower bound" in said
