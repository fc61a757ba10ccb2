"""The cuts: disjoint, of the stated sizes, across splits, and drawn as they are stored."""

import pytest

from envtuning.worlds.bfcl.package import SPLITS, TOOL_CLASSES
from envtuning.worlds.bfcl.splits import PARTS, SIZES, by_scenario, by_tool_class, draw, related
from envtuning.worlds.bfcl.statistics import scenario_interval
from envtuning.worlds.bfcl.tasks import load_tasks


def flat(task):
    return tuple(call for turn in task.ground_truth for call in turn)


def test_the_stored_cut_is_disjoint_and_complete(v4):
    cut = by_scenario()
    sets = [getattr(cut, part) for part in PARTS]
    assert [len(scenarios) for scenarios in sets] == [80, 20, 100] == list(SIZES.values())
    assert frozenset.union(*sets) == set(range(200))
    assert [len(cut.tasks(v4, part)) for part in PARTS] == [320, 80, 400]


def test_no_ground_truth_and_no_scenario_is_on_two_sides(v4):
    cut = by_scenario()
    truths = [{flat(task) for task in cut.tasks(v4, part)} for part in PARTS]
    assert not truths[0] & truths[1]
    assert not truths[0] & truths[2]
    assert not truths[1] & truths[2]
    for group in related(v4):
        assert sum(bool(set(group) & getattr(cut, part)) for part in PARTS) == 1


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
    cut = by_tool_class(v4, held_out)
    for part in ("train", "validation"):
        assert not any(held_out in task.classes for task in cut.tasks(v4, part))
    assert not cut.train & cut.test
    assert not cut.validation & cut.test
    assert not cut.train & cut.validation
    assert len(cut.train | cut.validation | cut.test) == 200
    assert len(cut.validation) >= 20


def test_intervals_resample_scenarios(v4):
    """Four equal variants of a scenario tell no more than one: the interval is that of the scenarios, not of the tasks."""
    values = [float(number % 2) for number in range(40)]
    once = scenario_interval(values, list(range(40)))
    four = scenario_interval(values * 4, list(range(40)) * 4)
    assert four == pytest.approx(once)
    as_if_independent = scenario_interval(values * 4, list(range(160)))
    assert as_if_independent[1] - as_if_independent[0] < 0.6 * (once[1] - once[0])
