"""The cuts: disjoint, of the stated sizes, across splits, and drawn as they are stored."""

import hashlib
import json
import subprocess
import sys
from typing import get_args

import numpy as np
import pytest

from benchmarks.bfcl.cuts import _deal, draw, related, without
from benchmarks.bfcl.statistics import macro_interval, scenario_interval
from envtuning.worlds.bfcl.package import SPLITS, TOOL_CLASSES
from envtuning.worlds.bfcl.splits import SIZES, SUBSETS, CutName, by_scenario, by_tool_class
from envtuning.worlds.bfcl.tasks import load_tasks


def flat(task):
    return tuple(call for turn in task.ground_truth for call in turn)


@pytest.mark.parametrize("name", get_args(CutName))
def test_a_stored_cut_is_disjoint_and_complete(v4, name):
    cut = by_scenario(name)
    sets = [getattr(cut, subset) for subset in SUBSETS]
    assert [len(scenarios) for scenarios in sets] == [80, 20, 100] == list(SIZES.values())
    assert frozenset.union(*sets) == set(range(200))
    assert [len(cut.tasks(v4, subset)) for subset in SUBSETS] == [320, 80, 400]


def test_equal_first_states_are_on_one_side_whatever_classes_a_task_involves(v4):
    """By the file itself. In the first cut three groups cross: what stood there was measured with it, so it stays what it was."""

    def crossing(name):
        sides = {}
        for subset in SUBSETS:
            for task in by_scenario(name).tasks(v4, subset):
                sides.setdefault(task.whole_state, {}).setdefault(subset, set()).add(task.scenario)
        return {tuple(sorted(set().union(*found.values()))) for found in sides.values() if len(found) > 1}

    assert crossing("scenarios-2") == set()
    assert crossing("scenarios-1") >= {(63, 83), (66, 70, 74), (100, 104, 133)}


@pytest.mark.parametrize("name", get_args(CutName))
def test_a_cut_never_changes(name):
    told = [sorted(getattr(by_scenario(name), subset)) for subset in SUBSETS]
    digests = {"scenarios-1": "64b804a3606f4638", "scenarios-2": "7a9a85f583f5207c"}
    assert hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16] == digests[name]


@pytest.mark.parametrize("name", get_args(CutName))
def test_no_ground_truth_and_no_scenario_is_on_two_sides(v4, name):
    cut = by_scenario(name)
    truths = [{flat(task) for task in cut.tasks(v4, subset)} for subset in SUBSETS]
    assert not truths[0] & truths[1]
    assert not truths[0] & truths[2]
    assert not truths[1] & truths[2]
    for group in related(v4, name=name):
        assert sum(bool(set(group) & getattr(cut, subset)) for subset in SUBSETS) == 1


def test_a_cut_task_by_task_would_have_leaked(v4):
    """Why scenarios: most tasks have a twin with the same ground truth in another split."""
    base = {flat(task) for task in load_tasks(v4, "base")}
    shared = [sum(flat(task) in base for task in load_tasks(v4, split)) for split in SPLITS[1:]]
    assert min(shared) >= 180


def test_the_same_seed_draws_the_same_cut(v4):
    groups = related(v4)
    assert draw(groups, 5) == draw(groups, 5) != draw(groups, 6)


@pytest.mark.parametrize("held_out", TOOL_CLASSES)
def test_holding_out_a_tool_class_keeps_it_out_of_training(v4, held_out):
    cut = by_tool_class("v4", held_out)
    assert cut == without(v4, held_out), "it is stored as it is made"
    for subset in ("train", "validation"):
        assert not any(held_out in task.classes for task in cut.tasks(v4, subset))
    assert not cut.train & cut.test
    assert not cut.validation & cut.test
    assert not cut.train & cut.validation
    assert len(cut.train | cut.validation | cut.test) == 200
    assert len(cut.validation) >= 20


def test_the_cuts_by_tool_class_are_those_that_figures_were_measured_on(v4):
    told = []
    for held_out in ("MathAPI", "TradingBot"):
        cut = by_tool_class("v4", held_out, "scenarios-1")
        told.append([sorted(getattr(cut, subset)) for subset in SUBSETS])
    assert hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16] == "082f7f783f655495"


def test_groups_are_dealt_whole_into_what_room_there_is():
    found = [_deal([[5], [3, 4], [0, 1, 2]], {"a": 3, "b": 3}, seed) for seed in range(20)]
    assert {frozenset(subsets.values()) for subsets in found} == {
        frozenset({frozenset({0, 1, 2}), frozenset({3, 4, 5})})
    }
    assert len({subsets["a"] for subsets in found}) == 2


def test_what_is_unknown_is_refused_with_what_is_known(v4):
    with pytest.raises(ValueError, match="subset='dev': give one of train, validation, test"):
        by_scenario().tasks(v4, "dev")
    with pytest.raises(ValueError, match="cut='mine': the cuts are scenarios-1, scenarios-2"):
        by_scenario("mine")
    with pytest.raises(ValueError, match="held_out='Maths': the tool classes are GorillaFileSystem, MathAPI"):
        by_tool_class("v4", "Maths")


def test_intervals_resample_scenarios(v4):
    """Four equal variants of a scenario tell no more than one: the interval is that of the scenarios, not of the tasks."""
    values = [float(number % 2) for number in range(40)]
    once = scenario_interval(values, list(range(40)))
    four = scenario_interval(values * 4, list(range(40)) * 4)
    assert four == pytest.approx(once)
    as_if_independent = scenario_interval(values * 4, list(range(160)))
    assert as_if_independent[1] - as_if_independent[0] < 0.6 * (once[1] - once[0])


def test_the_macro_interval_weighs_groups_alike_and_resamples_scenarios():
    """A group that is always right and a rare one that is right half of the time: around .75, and as wide as half of the rare one's."""
    rare = [float(number % 2) for number in range(20)]
    values, groups = [1.0] * 180 + rare, ["often"] * 180 + ["rarely"] * 20
    scenarios = [*range(180), *range(20)]
    low, high = macro_interval(values, groups, scenarios)
    assert low < 0.75 < high
    alone = np.subtract(*reversed(scenario_interval(rare, list(range(20)))))
    assert high - low == pytest.approx(alone / 2, rel=0.25)
    assert macro_interval([1.0, 1.0], ["a", "b"], [0, 1]) == (1.0, 1.0)


OF_THE_PAPER_S_VERSION = """
from benchmarks.bfcl.cuts import related, without
from envtuning.worlds.bfcl.package import TOOL_CLASSES, load
from envtuning.worlds.bfcl.splits import SUBSETS, by_scenario, by_tool_class
package, cut = load("v3-paper"), by_scenario()
truths = [{tuple(call for turn in task.ground_truth for call in turn) for task in cut.tasks(package, subset)} for subset in SUBSETS]
assert [len(cut.tasks(package, subset)) for subset in SUBSETS] == [320, 80, 400]
assert not (truths[0] & truths[1] or truths[0] & truths[2] or truths[1] & truths[2])
assert all(sum(bool(set(group) & getattr(cut, subset)) for subset in SUBSETS) == 1 for group in related(package))
assert all(by_tool_class("v3-paper", held_out) == without(package, held_out) for held_out in TOOL_CLASSES)
print("disjoint")
"""


def test_the_cut_is_disjoint_in_the_paper_s_version_too(v3_paper):
    """In a process of its own: one process knows one version."""
    ran = subprocess.run([sys.executable, "-c", OF_THE_PAPER_S_VERSION], capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == "disjoint", ran.stderr[-2000:]
