"""What judges a turn: calls, state and results, all three; turns without ground truth are not judged."""

import builtins
from itertools import product

from benchmarks.bfcl.official import fresh_globals, official_verdict
from envtuning.worlds.bfcl.check import GroundTruth, TurnCheck
from envtuning.worlds.bfcl.tasks import find_task, load_tasks
from envtuning.worlds.bfcl.tools import Toolbox


def test_a_turn_is_right_when_called_state_and_response_are():
    for called, state, response in product((False, True), repeat=3):
        assert TurnCheck(called, state, response).right == (called + state + response == 3)


def first_turn(package, task):
    """Agent's tools and results after the plan's first turn."""
    agent = Toolbox(package, task)
    return agent, [agent.run(call).text for call in task.plan[0]]


def test_the_plan_itself_is_right_and_each_thing_left_out_is_seen(v4):
    task = find_task(v4, "multi_turn_base_0")  # its first turn makes a folder and moves a file
    agent, results = first_turn(v4, task)
    assert GroundTruth(v4, task).check(0, agent, results, True) == TurnCheck(True, True, True)
    assert GroundTruth(v4, task).check(0, agent, results, False) == TurnCheck(False, True, True)
    assert GroundTruth(v4, task).check(0, Toolbox(v4, task), results, True) == TurnCheck(True, False, True)
    assert GroundTruth(v4, task).check(0, agent, [], True) == TurnCheck(True, True, False)


def test_results_of_earlier_turns_count(v4):
    task = find_task(v4, "multi_turn_base_0")
    agent, results = first_turn(v4, task)
    assert GroundTruth(v4, task).check(0, agent, ["seen before", *results], True).response


def test_a_turn_without_ground_truth_is_not_judged_and_leaves_its_tools_alone(v4):
    task = next(task for task in load_tasks(v4, "miss_func") if () in task.ground_truth)
    assert GroundTruth(v4, task).check(task.ground_truth.index(()), Toolbox(v4, task), [], True) is None


def test_a_file_system_that_holds_itself_is_wrong_and_is_not_compared(v4):
    task = find_task(v4, "multi_turn_base_0")
    agent, results = first_turn(v4, task)
    root = agent.instances["GorillaFileSystem"].root
    root.contents["again"] = root
    assert GroundTruth(v4, task).check(0, agent, results, True) == TurnCheck(True, False, True)


def test_a_trajectory_short_of_a_turn_is_the_official_force_termination(v4):
    task = find_task(v4, "multi_turn_base_0")
    calls = [[list(turn)] for turn in task.ground_truth]
    assert official_verdict(v4, task, calls)["valid"]
    short = official_verdict(v4, task, calls[:-1])
    assert (short["valid"], short["error_type"]) == (False, "multi_turn:force_terminated")


def test_an_official_verdict_leaves_the_package_as_it_was(v4, monkeypatch):
    """Its executor keeps instances among its globals; its tools change a scenario's dicts and a default list."""
    post = v4.tool_class("TwitterAPI").post_tweet
    names, default = set(vars(v4.executor)), post.__defaults__
    variables = vars(v4.long_context).items()
    scenario = {name: dict(value) for name, value in variables if isinstance(value, dict) and name[:2] != "__"}
    assert any(scenario.values())
    with fresh_globals(v4):
        monkeypatch.setattr(builtins, "kept", "everybody's", raising=False)  # a dict among the module's variables too
        v4.executor.kept = "an instance"
        post.__defaults__[0].append("#seen")
        for name in scenario:
            vars(v4.long_context)[name].clear()
            vars(v4.long_context)[name]["more"] = 1
    assert kept == "everybody's"  # noqa: F821
    assert set(vars(v4.executor)) == names
    assert post.__defaults__ is default
    assert not default[0]
    assert scenario == {name: vars(v4.long_context)[name] for name in scenario}
