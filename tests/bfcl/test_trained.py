"""Tables over many trained policies: what is done is read again, and who is compared is compared on the same tasks."""

import json

import pytest

from benchmarks.bfcl import ablations, held_out
from benchmarks.bfcl.trained import Arm, Trained, by_scenario, figures, spec_of, tasks_tested
from envtuning.worlds.bfcl.package import TOOL_CLASSES
from envtuning.worlds.bfcl.tasks import load_tasks

TINY = {
    "stages": [{"name": "single", "budget": 40, "config": ablations.ALL_TASKS}],
    "suites.validation_per_slice": 1,
    "suites.probe_per_slice": 0,
}


@pytest.mark.parametrize("name", TOOL_CLASSES)
def test_who_never_sees_a_class_is_tested_on_all_tasks_that_use_it_and_trained_on_none(v4, name):
    arm = held_out.without("v4", name)
    of_class = {task.id for split in ("base", "miss_func", "miss_param", "long_context") for task in load_tasks(v4, split)
                if name in task.classes}  # fmt: skip
    assert {task.id for task in tasks_tested(arm)} == of_class
    assert not of_class & {task.id for task in arm.world.cut.tasks(v4, "train")}
    spec, usual = arm.spec(7), spec_of("v4", {})
    assert spec.stages == usual.stages
    assert spec.target == usual.target
    assert spec.seed == 7
    assert spec.world.options == {"version": "v4", "held_out": name}


def test_the_arms_that_are_compared_have_one_budget_and_one_test(v4):
    arms = [ablations.arm("v4", name) for name in ablations.SWITCHES]
    assert len({arm.spec(0).budget for arm in arms}) == 1
    tasks = [[task.id for task in tasks_tested(arm)] for arm in arms]
    assert all(these == tasks[0] for these in tasks)
    assert len(tasks[0]) == 400


def test_a_part_of_the_budget_is_that_part_of_every_stage_s_and_has_folders_of_its_own(v4, tmp_path):
    whole, part = ablations.arm("v4", "four stages"), ablations.arm("v4", "four stages", 0.25)
    assert [4 * stage.budget for stage in part.spec(0).stages] == [stage.budget for stage in whole.spec(0).stages]
    trained = Trained(tmp_path, (whole, part), (0,))
    files = {trained.file(arm, 0) for arm in (whole, part)} | {trained.folder(arm, 0) for arm in (whole, part)}
    assert len(files) == 4


def test_a_scenario_s_score_is_the_mean_over_its_variants(v4):
    tasks = [load_tasks(v4, split)[number] for split in ("base", "miss_func") for number in (5, 3)]
    assert by_scenario([1, 0, 0, 0], tasks) == [0, 0.5]  # scenarios 3 and 5


def test_a_run_that_is_done_is_not_made_again_and_one_that_is_not_is(v4, tmp_path, monkeypatch):
    arm = Arm("tiny", "v4", TINY)
    few = tasks_tested(arm)[::80]
    monkeypatch.setattr("benchmarks.bfcl.trained.tasks_tested", lambda arm: few)
    trained = Trained(tmp_path, (arm,), (1, 2))
    trained.work(1)
    files = [trained.file(arm, seed) for seed in (1, 2)]
    first = files[0].read_text()
    files[0].write_text(first.replace("spent", "untouched"))
    files[1].unlink()
    trained.work(1)
    assert files[0].read_text() == first.replace("spent", "untouched")
    assert json.loads(files[1].read_text())["scores"].keys() == {"success", "progress"}
    rows = trained.scores(arm, "progress", few)
    assert [len(row) for row in rows] == [len({task.scenario for task in few})] * 2


def test_an_interval_is_over_scenarios_alone_where_there_are_too_few_seeds():
    one, three = [[0.0, 1.0, 0.5, 0.5]], [[0.0, 1.0, 0.5, 0.5]] * 3
    assert figures(one)["mean"] == figures(three)["mean"]  # equal seeds say no more than one
    assert figures([[0.0, 0.0], [1.0, 1.0], [0.5, 0.5]])["by seed"] == [0.0, 1.0, 0.5]
