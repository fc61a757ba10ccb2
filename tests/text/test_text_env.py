"""``MAPFFrozenLakeText-v0``: the same world in words; no reply breaks it."""

import pickle
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

import mapf_frozenlake as mfl
from mapf_frozenlake import Action, LakeError
from tests.text.lakes import lake

ID = "MAPFFrozenLakeText-v0"
SQUARE = lake(["..", ".."], [(0, 0), (1, 1)], [(0, 1), (1, 0)], makespan=1)


def lines(moves):
    return "\n".join(f"Agent {agent}: {Action(int(move)).name}" for agent, move in enumerate(moves))


@pytest.mark.parametrize("mode", ["plan", "turns"])
@pytest.mark.parametrize("style", ["paper", "coordinates", "short"])
def test_checker(mode, style):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(ID, mode=mode, style=style, size=4).unwrapped, skip_render_check=True)


def test_plan_mode():
    env = gym.make(ID)
    observation, _ = env.reset(options={"instance": SQUARE}, seed=0)
    assert observation == mfl.plan_prompt(SQUARE)
    assert mfl.from_text(observation) == SQUARE
    said, reward, terminated, truncated, info = env.step("Agent 0: RIGHT\nAgent 1: LEFT")
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert (info["valid"], info["optimal"], info["parse_error"], info["actions"]) == (True, True, None, [[2], [0]])
    assert said.startswith("Valid and optimal")
    with pytest.raises(LakeError, match="call reset first"):
        env.step("Agent 0: RIGHT\nAgent 1: LEFT")


@pytest.mark.parametrize(
    ("reward", "reply", "paid"),
    [
        ("sparse", "Agent 0: RIGHT\nAgent 1: WAIT", 0.0),
        ("progress", "Agent 0: RIGHT\nAgent 1: WAIT", 0.5),
        ("progress", "Agent 0: RIGHT\nAgent 1: DOWN LEFT", 0.5),
        ("progress", "Agent 0: RIGHT\nAgent 1: LEFT", 1.0),
        ("legal", "Agent 0: WAIT\nAgent 1: DOWN", 0.5),
        ("legal", "Agent 0: WAIT\nAgent 1: WAIT", 1.0),
        ("shaped", "Agent 0: RIGHT\nAgent 1: WAIT", 0.5 / 4),
        ("shaped", "Agent 0: RIGHT\nAgent 1: LEFT", 1.0 + 1 / 4),
        ("progress", "hm", 0.0),
        ("legal", "hm", 0.0),
        ("shaped", "hm", 0.0),
    ],
)
def test_what_a_plan_pays(reward, reply, paid):
    env = gym.make(ID, reward=reward)
    env.reset(options={"instance": SQUARE}, seed=0)
    assert env.step(reply)[1] == pytest.approx(paid)


def test_who_falls_keeps_its_potential():
    env = gym.make(ID, reward="shaped", size=3, num_agents=1)
    env.reset(options={"instance": lake(["..#", "..."], [(0, 0)], [(1, 2)])}, seed=0)
    assert env.step("Agent 0: RIGHT RIGHT")[1] == pytest.approx(1 / 5)


@pytest.mark.parametrize("feedback", [True, False])
@pytest.mark.parametrize("mode", ["plan", "turns"])
def test_feedback_can_be_switched_off(mode, feedback):
    env = gym.make(ID, mode=mode, feedback=feedback)
    env.reset(options={"instance": SQUARE}, seed=0)
    for reply in ("Agent 0: UP\nAgent 1: WAIT", "what?"):
        said, *_ = env.step(reply)
        explained = "off the board" in said or "could be read" in said
        assert explained == feedback
        if mode == "plan":
            env.reset(options={"instance": SQUARE})


@given(
    seed=st.integers(0, 10_000),
    collisions=st.sampled_from(["block", "end"]),
    reward=st.sampled_from(["progress", "shaped"]),
)
@settings(max_examples=15)
def test_turns_are_the_same_world(seed, collisions, reward):
    """The same moves, in words and as numbers: the same rewards, ends and outcomes."""
    kwargs = {"size": 4, "num_agents": 2, "collisions": collisions, "reward": reward, "horizon": 8}
    words, numbers = (
        gym.make(ID, mode="turns", **kwargs),
        gym.make("MAPFFrozenLake-v0", observation="compact", **kwargs),
    )
    words.reset(seed=seed)
    numbers.reset(seed=seed)
    rng, over = np.random.default_rng(seed), False
    while not over:
        moves = rng.integers(0, 5, 2)
        said, *ours, info = words.step(lines(moves))
        seen, *theirs, other = numbers.step(moves)
        assert ours == theirs
        assert (info["events"] == other["events"]).all()
        over = ours[1] or ours[2]
        for agent, (row, col, *_) in enumerate(seen.tolist()):
            assert f"Agent {agent} is at ({row}, {col})" in said
    assert {key: info[key] for key in ("success", "valid", "optimal")} == {
        key: other[key] for key in ("success", "valid", "optimal")
    }


def test_an_unread_turn_is_a_wait_that_is_not_paid():
    env = gym.make(ID, mode="turns", reward="legal")
    env.reset(options={"instance": SQUARE}, seed=0)
    said, reward, terminated, truncated, info = env.step("I am not sure.")
    assert (reward, terminated, truncated, info["actions"]) == (0.0, False, False, None)
    assert "everybody waited" in said
    assert "line 1, column" in info["parse_error"]
    *_, info = env.step("RIGHT LEFT")
    assert (info["success"], info["valid"], info["optimal"]) == (True, False, False)


def test_turns_end_at_the_horizon():
    env = gym.make(ID, mode="turns", horizon=3)
    assert "There are at most 3 steps." in env.reset(seed=0)[0]
    ends = [env.step("nothing")[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (False, True)]


@given(st.lists(st.text(max_size=60), max_size=5), st.sampled_from(["plan", "turns"]))
@settings(max_examples=60)
def test_no_reply_breaks_it(replies, mode):
    env = gym.make(ID, mode=mode)
    env.reset(options={"instance": SQUARE}, seed=0)
    for reply in replies:
        observation, reward, terminated, truncated, _ = env.step(reply)
        assert observation in env.observation_space
        assert 0 <= reward <= 1
        if terminated or truncated:
            env.reset(options={"instance": SQUARE})


def test_same_seed_same_words():
    first, second = gym.make(ID, size=5), gym.make(ID, size=5)
    assert first.reset(seed=3)[0] == second.reset(seed=3)[0]
    assert first.reset()[0] == second.reset()[0] != first.reset()[0]


def test_it_survives_pickling():
    env = gym.make(ID, mode="turns").unwrapped
    env.reset(seed=1)
    copy = pickle.loads(pickle.dumps(env))
    assert copy.step("RIGHT LEFT")[:4] == env.step("RIGHT LEFT")[:4]


def test_configs_can_be_swapped():
    env = gym.make(ID, max_size=5).unwrapped
    env.set_config(mfl.LakeConfig.single(5, 2, feedback=False))
    text, _ = env.reset(seed=0)
    assert mfl.from_text(text).height == 5
    assert env.step("?")[0] == "The plan is not valid."
    with pytest.raises(LakeError, match="max_size"):
        env.set_config(mfl.LakeConfig.single(6, 2))


@pytest.mark.parametrize("mode", ["plan", "turns"])
def test_the_running_episode_keeps_its_rules(mode):
    """A config that is set in its midst changes neither what it pays nor what it says."""
    bump = "Agent 0: UP\nAgent 1: LEFT"
    old = mfl.LakeConfig.single(2, 2, reward="sparse", feedback=False)
    new = mfl.LakeConfig.single(2, 2, reward="progress", feedback=True)

    def first_step(*configs):
        env = gym.make(ID, mode=mode, config=configs[0]).unwrapped
        env.reset(options={"instance": SQUARE}, seed=0)
        for config in configs[1:]:
            env.set_config(config)
        said, reward, *_ = env.step(bump)
        env.reset(options={"instance": SQUARE})
        return (said, reward), env.step(bump)[:2]

    as_before, afterwards = first_step(old, new)
    assert as_before == first_step(old)[0] != first_step(new)[0]
    assert afterwards == first_step(new)[0]


@pytest.mark.parametrize("mode", ["plan", "turns"])
@pytest.mark.parametrize("style", ["paper", "coordinates", "short"])
def test_all_that_it_says_of_its_own_is_made_of_its_spaces_characters(mode, style):
    replies = [
        "no answer",
        "",
        "LEFT " * 30,
        "Agent 0: UP UP UP DOWN LEFT",
        "Agent 0: (0, 0)",
        "Agent 7: LEFT",
        '{"0": ["LEFT"], "1": [}',
        "[[",
    ]
    said = []
    for config in (
        {"size": 2},
        {"size": 5, "num_agents": 4, "hole_ratio": 0.2},
        {"collisions": "end", "num_agents": 3},
    ):
        env = gym.make(ID, mode=mode, style=style, **config).unwrapped
        env.reset(seed=0)
        rng = np.random.default_rng(0)
        plans = [lines(rng.integers(0, 5, env.instance.num_agents)) for _ in range(20)]
        for reply in replies + plans:
            if env._over:
                said.append(env.reset()[0])
            said.append(env.step(reply)[0])
    assert set("".join(said)) <= env.observation_space.character_set


def test_shared_memory_is_refused_because_gymnasium_would_read_no_words_there():
    with pytest.raises(ValueError, match="shared_memory=False"):
        gym.vector.AsyncVectorEnv([lambda: gym.make(ID)])


@pytest.mark.slow
def test_in_other_processes_it_says_the_same():
    make = lambda: gym.make(ID, mode="turns")  # noqa: E731
    ours, theirs = gym.vector.SyncVectorEnv([make] * 2), gym.vector.AsyncVectorEnv([make] * 2, shared_memory=False)
    try:
        assert ours.reset(seed=0)[0] == theirs.reset(seed=0)[0]
        replies = ("Agent 0: UP\nAgent 1: UP", "; no")
        assert ours.step(replies)[0] == theirs.step(replies)[0]
    finally:
        theirs.close(terminate=True)


def test_render():
    env = gym.make(ID, render_mode="ansi")
    env.reset(seed=0)
    assert "\n" in env.render()


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"mode": "chat"}, "mode='chat'"),
        ({"style": "haiku"}, "style='haiku'"),
        ({"is_slippery": True}, "is_slippery=True: the text interface has no slippery ice"),
        ({"reward": len}, "a callable, which pays single steps"),
        ({"render_mode": "human"}, "render_mode='human'"),
        ({"colour": 1}, "unexpected keyword argument 'colour'"),
    ],
)
def test_bad_arguments(kwargs, message):
    from mapf_frozenlake.envs.text_env import MAPFFrozenLakeTextEnv

    with pytest.raises(LakeError, match=message):
        MAPFFrozenLakeTextEnv(**kwargs)


def test_actions_are_strings():
    env = gym.make(ID).unwrapped
    with pytest.raises(LakeError, match="call reset first"):
        env.step("Agent 0: UP")
    env.reset(seed=0)
    with pytest.raises(LakeError, match="type int: give the reply as a string"):
        env.step(3)
