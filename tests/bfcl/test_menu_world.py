"""The world with menus and its learner; the four stages end to end."""

import random

import pytest

from benchmarks.bfcl.menu import DONE, MenuWorld, choices, read_menu, shown
from benchmarks.bfcl.menu_trainee import Choice, MenuPolicy, MenuTrainee, advantages
from benchmarks.bfcl.trained import spec_of
from envtuning.loop.run import start
from envtuning.worlds import make_world
from envtuning.worlds.bfcl.calls import as_reply, read_call
from envtuning.worlds.bfcl.config import BFCLConfig
from envtuning.worlds.bfcl.package import SPLITS
from envtuning.worlds.bfcl.scripted import named_plan
from envtuning.worlds.bfcl.tasks import find_task, load_tasks
from envtuning.worlds.episodes import rates

NONE = BFCLConfig(tool_style="none")
BASE = BFCLConfig(slices={"base": {}}, tool_style="none")


@pytest.fixture(scope="module")
def world(v4):
    return MenuWorld()


def test_the_menu_always_holds_the_right_call(v4):
    for task in random.Random(0).sample([task for split in SPLITS for task in load_tasks(v4, split)], 40):
        env = MenuWorld().play_env(NONE)
        said, _ = env.reset(options={"task": task})
        talk = env.conversation
        while not talk.over:
            menu = read_menu(said)
            assert DONE in menu
            assert len(set(menu)) == len(menu) >= 2
            made = [str(call) for call, _ in talk.earlier[env.turn_began :]]
            left = [as_reply([call]) for call in talk.task.plan[talk.turn]][len(made) :]
            right = next((c for c in menu if left and as_reply([c[1:-1]]) == c and _same(c, left[0], v4, task)), DONE)
            if left:
                assert right != DONE, (task.id, left[0], menu)
            said, *_ = env.step(right)
        assert talk.scores()["success"] == 1


def _same(choice, wanted, package, task):
    plan = {str(call): str(named) for a, b in zip(task.plan, named_plan(package, task)) for call, named in zip(a, b)}
    return str(read_call(choice[1:-1])) == plan[str(read_call(wanted[1:-1]))]


def test_the_menu_is_a_function_of_the_moment(v4):
    task = load_tasks(v4, "base")[3]
    assert choices(v4, task, 0, [], 0) == choices(v4, task, 0, [], 0)
    assert choices(v4, task, 0, [], 0) != choices(v4, task, 0, [], 1)
    assert read_menu(f"x\n{shown(['[ls()]', DONE])}") == ["[ls()]", DONE]
    assert read_menu("no menu") == []


def test_a_decision_answers_for_what_comes_after_it():
    lucky = [Choice([], 0, turn=0, paid=0.0), Choice([], 0, turn=1, paid=1.0)]
    late = [Choice([], 0, turn=0, paid=0.5), Choice([], 0, turn=1, paid=0.0)]
    better, spread = advantages([lucky, late])
    assert better[0, 1] > 0 > better[1, 1]
    assert better[0, 0] > 0 > better[1, 0]
    assert spread > 0
    assert advantages([lucky, lucky])[1] == 0


def test_the_learner_refuses_what_it_cannot_learn_from(world):
    with pytest.raises(ValueError, match="tools has none: give MenuWorld"):
        MenuTrainee.check_world(make_world("tools"))
    with pytest.raises(ValueError, match="has no menu"):
        MenuPolicy(MenuTrainee(world=world, capacity={}).weights).reply([[{"role": "user", "content": "x"}]])


def test_training_repeats_itself_from_a_saved_folder(world, tmp_path):
    first = MenuTrainee(world=world, capacity={}, group=4, groups=2)
    first.train(BASE, 16, seed=1)
    first.save(tmp_path)
    again = MenuTrainee(world=world, capacity={}, group=4, groups=2)
    again.load(tmp_path)
    assert first.train(BASE, 16, seed=2) == again.train(BASE, 16, seed=2)
    assert (first.weights == again.weights).all()


@pytest.mark.prove
def test_the_learner_learns_on_unseen_scenarios(world):
    cases = world.draw(BASE, 20, seed=1, purpose="validation", exclude=())
    trainee = MenuTrainee(world=world, capacity={}, exclude=(cases,))
    before = rates(world.play(trainee.policy(), cases, BASE, seed=0))
    trainee.train(BASE.model_copy(update={"reward": "syntax"}), 640, seed=3)
    after = rates(world.play(trainee.policy(), cases, BASE, seed=0))
    assert after["syntax"] > before["syntax"] + 0.1


def test_the_menu_is_that_of_the_turn_s_calls_and_of_the_replies_so_far(v4, world):
    task = find_task(v4, "multi_turn_base_0")
    env = world.play_env(NONE)
    said, _ = env.reset(options={"task": task})
    assert said.startswith(f"User: {task.questions[0]}\n")
    assert read_menu(said) == choices(v4, task, 0, [], 0)
    wrong, *_ = env.step("[cd(")
    assert wrong.startswith("Error: ")
    assert read_menu(wrong) == choices(v4, task, 0, [], 1) != choices(v4, task, 0, [], 0)
    told, *_ = env.step(as_reply([task.plan[0][0]]))
    assert read_menu(told) == choices(v4, task, 0, env.conversation.earlier, 2)
    asked, *_ = env.step(DONE)
    assert asked.startswith(f"User: {task.questions[1]}\n")
    assert read_menu(asked) == choices(v4, task, 1, [], 3)


@pytest.mark.slow
def test_the_four_stages_run_end_to_end(v4, tmp_path):
    changes = {f"stages.{n}.budget": 48 for n in range(4)}
    changes |= {"suites.validation_per_slice": 2, "suites.test_per_slice": 2, "suites.probe_per_slice": 2}
    changes |= {"suites.validate": "every 16", "trainee.options.group": 4, "trainee.options.groups": 2}
    run = start(spec_of("v4", changes), tmp_path / "run")
    reports = [run.state.stages[number].report for number in range(4)]
    assert [report.config["feedback"] for report in reports] == ["standard", "augmented", "augmented", "standard"]
    assert [report.config["reward"] for report in reports] == ["syntax", "progress", "progress", "progress"]
    assert all(report.failure_cases and report.behaviour and report.environment_stats for report in reports)
    assert (run.path / "test.json").exists()
