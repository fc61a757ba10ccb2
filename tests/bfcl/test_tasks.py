"""The tasks as the files describe them: ids, scenarios, what is offered when."""

import pytest

from envtuning.worlds.bfcl.package import SPLITS
from envtuning.worlds.bfcl.tasks import documents, find_task, load_tasks, scenario_of


def test_every_task_is_found_by_its_id_and_its_number_is_its_scenario(v4):
    for split in SPLITS:
        tasks = load_tasks(v4, split)
        assert len(tasks) == 200
        for number, task in enumerate(tasks):
            assert find_task(v4, task.id) is task
            assert (task.split, task.scenario, scenario_of(task.id)) == (split, number, number)
            assert task.long_context == (split == "long_context")


@pytest.mark.parametrize(
    "wrong",
    ["multi_turn_base_200", "multi_turn_base_-1", "multi_turn_base_1.0", "multi_turn_base_", "multi_turn_base_²", "multi_turn_bare_1", "base", ""],
)  # fmt: skip
def test_an_id_that_no_task_has_is_refused_with_an_example(v4, wrong):
    with pytest.raises(ValueError, match=r"ids are multi_turn_SPLIT_NUMBER, e\.g\. multi_turn_base_17"):
        find_task(v4, wrong)


def test_an_unknown_split_is_refused_with_those_that_there_are(v4):
    with pytest.raises(ValueError, match="split='bare': give one of base, miss_func"):
        load_tasks(v4, "bare")


@pytest.mark.parametrize("split", SPLITS)
def test_a_turn_offers_every_tool_of_the_tasks_classes_but_those_excluded_or_held_back_until_later(v4, split):
    for task in load_tasks(v4, split)[::10]:
        every = [tool["name"] for name in task.classes for tool in documents(v4, name)]
        for turn in range(task.turns):
            later = {name for since, names in task.held_back.items() for name in names if turn < since}
            assert task.hidden(turn) == task.excluded | later
            offered = [tool["name"] for tool in task.tools(v4, turn)]
            assert offered == [name for name in every if name not in task.excluded and name not in later]
            new = {tool["name"] for tool in task.new_tools(v4, turn)}
            assert new == set(task.held_back.get(turn, ()))
            if turn:
                before = {tool["name"] for tool in task.tools(v4, turn - 1)}
                assert set(offered) - before == new - task.excluded
        assert bool(task.held_back) == (split == "miss_func")


def test_the_plan_is_the_ground_truth_and_turns_without_it_are_not_checked(v4):
    task = next(task for task in load_tasks(v4, "miss_func") if () in task.ground_truth)
    assert [len(calls) for calls in task.plan] == [len(calls) for calls in task.ground_truth]
    assert task.turns == len(task.questions) == len(task.plan)
    assert task.checked_turns == task.turns - task.ground_truth.count(())


def test_questions_and_answers_belong_together_one_to_one(v4, tmp_path):
    questions, answers = (v4.data_file("base", answers=kind).read_text().splitlines() for kind in (False, True))
    files = {False: tmp_path / "questions", True: tmp_path / "answers"}
    files[False].write_text("\n".join(questions[:2]))

    class Files:
        def data_file(self, split, *, answers=False):
            return files[answers]

    for kept in (answers[:1], answers[1::-1]):
        files[True].write_text("\n".join(kept))
        with pytest.raises((ValueError, AssertionError), match=r"shorter|same order"):
            load_tasks(Files(), "base")
