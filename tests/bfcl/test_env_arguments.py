"""The environment's arguments, spaces and info, each by its rule."""

import gymnasium as gym
import pytest

from envtuning.worlds.bfcl.calls import as_reply
from envtuning.worlds.bfcl.env import CHARACTERS, BFCLMultiTurnEnv
from envtuning.worlds.bfcl.scripted import DONE
from envtuning.worlds.bfcl.tasks import find_task, load_tasks


@pytest.fixture
def env(v4):
    return BFCLMultiTurnEnv()


def test_gym_make_gives_the_environment_itself(v4):
    assert type(gym.make("BFCLMultiTurn-v0")) is BFCLMultiTurnEnv


@pytest.mark.parametrize(
    ("name", "wrong", "known"),
    [
        ("split", "bass", "'base', 'miss_func', 'miss_param', 'long_context'"),
        ("split", ["base", "bass"], "'base', 'miss_func', 'miss_param', 'long_context'"),
        ("reward", "sparse", "'progress', 'syntax', 'binary'"),
        ("tool_style", "long", "'json', 'short', 'none'"),
        ("unlisted", "hide", "'run', 'refuse'"),
        ("render_mode", "human", "None, 'ansi'"),
    ],
)
def test_what_there_is_not_is_refused_with_what_there_is(v4, name, wrong, known):
    value = wrong if isinstance(wrong, str) else wrong[-1]
    with pytest.raises(ValueError, match=f"^{name}={value!r}: give one of {known}$"):
        BFCLMultiTurnEnv(**{name: wrong})


def test_tasks_are_those_of_the_splits_or_those_that_are_named(v4):
    assert BFCLMultiTurnEnv().tasks == list(load_tasks(v4, "base"))
    both = BFCLMultiTurnEnv(split=["miss_func", "base"]).tasks
    assert both == [*load_tasks(v4, "miss_func"), *load_tasks(v4, "base")]
    named = ["multi_turn_base_3", "multi_turn_miss_param_1"]
    assert [task.id for task in BFCLMultiTurnEnv(tasks=named).tasks] == named
    with pytest.raises(ValueError, match=r"^tasks=\[\]: name at least one"):
        BFCLMultiTurnEnv(tasks=[])
    with pytest.raises(ValueError, match=r"^split=\[\]: name at least one of base, miss_func"):
        BFCLMultiTurnEnv(split=[])
    with pytest.raises(TypeError, match=r"^task=17: a task or its id"):
        BFCLMultiTurnEnv().reset(options={"task": 17})


def test_any_text_up_to_the_bound_is_in_the_spaces_and_samples_are_of_usual_characters(env):
    for space, longest in ((env.action_space, 20_000), (env.observation_space, 1_000_000)):
        assert (space.min_length, space.max_length) == (0, longest)
        assert "é" * longest in space
        assert "é" * (longest + 1) not in space
        assert 5 not in space
        assert [5] not in space
        assert space.character_set == frozenset(CHARACTERS)


def test_shared_memory_is_refused_because_gymnasium_would_read_no_words_there(env):
    with pytest.raises(ValueError, match="shared_memory=False"):
        gym.vector.AsyncVectorEnv([lambda: env])


def test_a_step_wants_a_running_conversation_and_a_text(env):
    with pytest.raises(RuntimeError, match="call reset first"):
        env.step(DONE)
    env.reset(options={"task": "multi_turn_base_0"})
    with pytest.raises(TypeError, match="an action of type int: give the reply as a string"):
        env.step(5)
    while not env.step(DONE)[2]:
        pass
    with pytest.raises(RuntimeError, match="call reset first"):
        env.step(DONE)
    with pytest.raises(ValueError, match=r"options \['seed', 'turn'\] are not known: give task"):
        env.reset(options={"turn": 1, "seed": 2})


def test_it_renders_what_the_agent_reads_where_it_was_asked_to(env):
    with pytest.raises(ValueError, match="make the env with render_mode='ansi'"):
        env.render()
    drawn = BFCLMultiTurnEnv(render_mode="ansi")
    assert drawn.render() == ""
    said, _ = drawn.reset(seed=0)
    assert drawn.render() == said


def test_info_has_the_turn_that_ended_last_and_at_the_end_the_verdict(v4, env):
    task = next(task for task in load_tasks(v4, "miss_func") if task.ground_truth.index(()) == 1)
    _, info = env.reset(options={"task": task})
    always = {"task": task.id, "slice": "miss_func", "turns": task.turns}
    assert info == always | {"turn": 0, "tools": task.tools(v4, 0), "state_check": None, "response_check": None}
    assert env.reset(options={"task": task.id})[1] == info
    _, paid, terminated, truncated, info = env.step(as_reply(task.ground_truth[0]))
    assert (paid, terminated, truncated, info["turn"]) == (0.0, False, False, 0)
    _, paid, _, _, info = env.step(DONE)
    right = {"state_check": True, "response_check": True}
    assert info == always | {"turn": 1, "tools": task.tools(v4, 1)} | right
    assert paid == pytest.approx(1 / task.checked_turns)
    _, _, _, _, info = env.step(DONE)
    assert info == always | {"turn": 2, "tools": task.tools(v4, 2), "state_check": None, "response_check": None}
    for _ in range(task.turns - 2):
        _, _, terminated, truncated, info = env.step(DONE)
    assert (terminated, truncated, info["success"], info["failure"]) == (True, False, False, "said_nothing")
    assert info["success"] is False
    assert info["trajectory"] == [[list(task.ground_truth[0])], *[[]] * (task.turns - 1)]
    assert (info["departures"], info["turns"], info["calls"]) == ([], task.turns, len(task.ground_truth[0]))


def test_state_and_response_are_told_apart(env, v4):
    task = find_task(v4, "multi_turn_base_0")
    env.reset(options={"task": task})
    env.step(f"[{task.ground_truth[0][0]}]")  # into the folder, and nothing is moved
    info = env.step(DONE)[4]
    assert (info["state_check"], info["response_check"]) == (False, False)
    env.reset(options={"task": task})
    env.step(as_reply([*task.ground_truth[0], "mkdir(dir_name='more')"]))
    info = env.step(DONE)[4]
    assert (info["state_check"], info["response_check"]) == (False, True)


def test_the_limit_of_steps_truncates(env, v4):
    env.reset(options={"task": "multi_turn_base_0"})
    ends = [env.step("[pwd()]")[2:4] for _ in range(v4.step_limit + 1)]
    assert ends == [(False, False)] * v4.step_limit + [(False, True)]


def test_the_number_of_turns_is_the_task_s_also_where_fewer_were_reached(env, v4):
    _, begun = env.reset(options={"task": "multi_turn_base_0"})
    for _ in range(v4.step_limit + 1):
        info = env.step("[pwd()]")[4]
    assert (info["turns"], info["turn"]) == (begun["turns"], 0)
    assert isinstance(info["turns"], int)


def test_tools_that_are_rewritten_in_place_are_the_caller_s_own(env):
    said, info = env.reset(options={"task": "multi_turn_base_0"})
    for document in info["tools"]:
        document["parameters"].clear()
    info["tools"].clear()
    assert env.reset(options={"task": "multi_turn_base_0"})[0] == said
    assert env.step(DONE)[4]["tools"]
