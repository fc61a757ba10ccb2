"""The native interface for Stable-Baselines3 plays what its own DummyVecEnv plays, and trains."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="needs Stable-Baselines3: pip install stable-baselines3")

from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

import mapf_frozenlake as mfl

ID = "MAPFFrozenLake-v0"
KWARGS = {"size": 4, "num_agents": 2, "reward": "progress", "horizon": 9}


def test_it_plays_what_a_dummy_vec_env_plays() -> None:
    ours = mfl.sb3_vec_env(5, **KWARGS)
    theirs = DummyVecEnv([lambda: Monitor(gym.make(ID, **KWARGS)) for _ in range(5)])
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    ours.seed(3), theirs.seed(3)
    np.testing.assert_array_equal(ours.reset(), theirs.reset())
    rng = np.random.default_rng(0)
    ended = 0
    for _ in range(40):
        actions = rng.integers(0, 5, (5, 2))
        left, right = ours.step(actions), theirs.step(actions)
        for one, other in zip(left[:3], right[:3]):
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype
        for row in np.flatnonzero(left[2]):
            ended += 1
            mine, other = left[3][row], right[3][row]
            np.testing.assert_array_equal(mine["terminal_observation"], other["terminal_observation"])
            for name in ("is_success", "success", "valid", "score", "optimal", "slice", "TimeLimit.truncated"):
                assert mine[name] == other[name]
            assert mine["episode"]["r"] == pytest.approx(other["episode"]["r"], abs=1e-6)
            assert mine["episode"]["l"] == other["episode"]["l"]
    assert ended > 20


BOARDS = list(mfl.generate(mfl.LakeConfig.single(3, 2), n=3, seed=5))
OTHER = mfl.LakeConfig.single(3, 2, hole_ratio=0.0)


@pytest.mark.parametrize(
    "options",
    [
        {"instance": BOARDS[0]},
        {"config": OTHER},
        {"config": OTHER, "instance": BOARDS[1]},
        [{"instance": board} for board in BOARDS],
    ],
)
def test_options_count_for_the_next_reset_as_in_a_dummy_vec_env(options) -> None:
    ours = mfl.sb3_vec_env(3, **KWARGS)
    theirs = DummyVecEnv([lambda: gym.make(ID, **KWARGS) for _ in range(3)])
    agents = mfl.sb3_vec_env(3, per_agent=True, **KWARGS)
    for envs in (ours, theirs, agents):
        envs.seed(3)
        envs.set_options(
            [one for one in options for _ in range(envs.num_envs // 3)] if type(options) is list else options
        )
    for _ in range(2):  # the second without options
        seen = ours.reset()
        np.testing.assert_array_equal(seen, theirs.reset())
        np.testing.assert_array_equal(seen.reshape(6, -1), agents.reset())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"instances": BOARDS}, "unknown reset option 'instances'"),
        ([{"config": OTHER}] * 2 + [{}] * 2, "the lakes share one"),
        ([{"instance": BOARDS[0]}] * 2 + [{}] * 2, "an instance for 1 of 2 lakes"),
        ([{"instance": BOARDS[0]}, {}] * 2, "between the rows of a lake"),
    ],
)
def test_options_that_the_lakes_cannot_follow_are_refused(options, said) -> None:
    envs = mfl.sb3_vec_env(2, per_agent=True, **KWARGS)
    envs.set_options(options)
    with pytest.raises(mfl.LakeError, match=said):
        envs.reset()


def test_per_agent_rows_act_by_one_number_and_are_masked_by_env_method() -> None:
    envs = mfl.sb3_vec_env(3, per_agent=True, size=4, num_agents=2)
    assert envs.num_envs == 6
    assert envs.action_space == gym.spaces.Discrete(5)
    envs.seed(0)
    envs.reset()
    masks = envs.env_method("action_masks", indices=[1, 4])
    np.testing.assert_array_equal(masks, envs.action_masks()[[1, 4]])
    assert envs.get_attr("action_masks")
    config = mfl.LakeConfig.single(3, 2)
    envs.env_method("set_config", config)
    assert envs.env_method("get_config") == [config] * 6


def test_ppo_and_dqn_learn_on_it_and_success_is_shown(tmp_path) -> None:
    envs = mfl.sb3_vec_env(8, **KWARGS)
    shown = EvalCallback(
        mfl.sb3_vec_env(2, **KWARGS), eval_freq=16, n_eval_episodes=4, log_path=str(tmp_path), verbose=0
    )
    model = PPO("MlpPolicy", envs, n_steps=16, batch_size=32, n_epochs=1, device="cpu", seed=0)
    model.learn(256, callback=shown)
    assert len(model.ep_info_buffer) > 0
    assert len(shown.evaluations_successes) > 0
    mean, _ = evaluate_policy(model, mfl.sb3_vec_env(2, **KWARGS), n_eval_episodes=4)
    assert 0 <= mean <= 1
    alone = gym.make(ID, size=4, num_agents=1, discrete=True, flat=True)
    DQN("MlpPolicy", alone, learning_starts=10, buffer_size=200, device="cpu").learn(60)


ONE_STEP = mfl.Instance(holes=np.zeros((2, 3), bool), starts=[[0, 0], [1, 0]], goals=[[0, 1], [1, 2]])


@pytest.mark.parametrize("per_agent", [False, True])
def test_is_success_says_what_it_was_asked_to_say(per_agent):
    moves = [[3, 2], [2, 2]]  # the first agent bumps into the border, then both arrive
    said = {}
    for key in ("success", "valid", "optimal"):
        envs = mfl.sb3_vec_env(1, per_agent=per_agent, success_key=key, instance=ONE_STEP)
        envs.reset()
        for actions in moves:
            _, _, over, infos = envs.step(np.array(actions if per_agent else [actions]))
        assert over.all()
        assert all(info["success"] and not info["valid"] for info in infos)
        said[key] = [info["is_success"] for info in infos]
    rows = 2 if per_agent else 1
    assert said == {"success": [True] * rows, "valid": [False] * rows, "optimal": [None] * rows}  # nobody solved it
    with pytest.raises(mfl.LakeError, match="give one of 'success', 'valid', 'optimal'"):
        mfl.sb3_vec_env(1, success_key="solved")


def test_active_says_which_rows_are_agents():
    envs = mfl.sb3_vec_env(8, per_agent=True, num_agents={1: 1, 3: 1})
    seen = envs.reset()
    assert set(envs.active.reshape(8, 3).sum(axis=1)) == {1, 3}
    np.testing.assert_array_equal(envs.active, seen.any(axis=1))
    np.testing.assert_array_equal(envs.action_masks()[~envs.active], [[0, 0, 0, 0, 1]] * int((~envs.active).sum()))
    assert mfl.sb3_vec_env(2, num_agents={1: 1, 3: 1}).active.tolist() == [False, False]  # no episode has begun


def test_a_config_is_set_by_its_method_and_an_unknown_attribute_is_refused():
    envs, config = mfl.sb3_vec_env(2, **KWARGS), mfl.LakeConfig.single(3, 2)
    with pytest.raises(AttributeError, match=r"set_config\(config\)"):
        envs.set_attr("config", config)
    envs.set_config(config.model_dump())
    assert envs.get_config() == config


def test_a_misspelt_argument_of_this_interface_is_named_too():
    with pytest.raises(TypeError, match=r"'sucess_key' .did you mean success_key='valid'.*per_agent"):
        mfl.sb3_vec_env(2, sucess_key="valid")
