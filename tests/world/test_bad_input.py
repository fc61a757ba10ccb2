"""Bad input is one sentence with the value, the bound and the remedy."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import mapf_frozenlake as mfl
from mapf_frozenlake import Instance, LakeBatch, LakeConfig, LakeError

ID = "MAPFFrozenLake-v0"


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"size": 3, "num_agents": 9}, r"num_agents=9 on a 3×3 lake needs 18 cells, there are 9: at most 4 agents, or size ≥ 5"),
        ({"hole_ratio": 1.5}, r"hole_ratio=1\.5: .*less than or equal to 0\.9"),
        ({"wait_ratio": -0.1}, r"wait_ratio=-0\.1: .*greater than or equal to 0"),
        ({"size": 65}, r"65.*less than or equal to 64"),
        ({"size": 4, "min_distance": 7}, "min_distance=7 on a 4×4 lake: cells are at most 6 apart"),
        ({"horizon": 0}, "horizon=0: .*greater than or equal to 1"),
        ({"collisions": "bounce"}, "collisions='bounce': .*'block', 'end', 'priority', 'block_both' or 'soft'"),
        ({"reward": "dense"}, "reward='dense': .*'sparse'"),
        ({"sized": 4}, r"unexpected keyword argument .sized. \(did you mean size=4\?\): known are .*size.*window"),
        ({"observation": "rgb"}, "observation='rgb': give one of 'ego', 'grid', 'pogema', 'compact'"),
        ({"dtype": "float64"}, "dtype='float64': give one of 'float32', 'int8'"),
        ({"certify": "yes"}, "certify='yes': give one of None, 'exact', 'solvable', 'reachable'"),
        ({"window": "5"}, "window='5': give a whole number"),
        ({"max_agents": 2.5}, r"max_agents=2\.5: give a whole number"),
        ({"size": 4.5}, r"size=4\.5: .*valid integer"),
        ({"instance": "SFFG"}, "instance='SFFG': give an Instance, or what"),
        ({"desc": 4}, "a map of type int: give a list of strings"),
        ({"max_size": 3}, "size 4 is beyond max_size=3"),
        ({"max_agents": 1}, "2 agents is beyond max_agents=1"),
        ({"max_size": 99}, "max_size=99.*2 to 64"),
        ({"render_mode": "telepathy"}, "render_mode='telepathy': give one of"),
        ({"config": LakeConfig(), "size": 4}, "size and config both say what is drawn"),
        ({"config": {"slice": {}}}, "unknown field 'slice': known are slices, num_agents"),
        ({"config": {"slices": {4: {"holes": 1}}}}, r"unknown field 'slices\.4\.holes': known are share, hole_ratio"),
        ({"config": 3}, "config of type int: give a LakeConfig, a dict"),
        ({"desc": ["SG"], "size": 4}, "2 to 64 rows"),
        ({"desc": ["SFG", "FFF", "FFF"], "num_agents": 1}, "num_agents and desc or instance both say what is drawn"),
        ({"desc": ["SHG", "HHF", "FFF"]}, "no way|reach|path"),
        ({"pool_size": 0}, "pool size 0: must be at least 1"),
        ({"num_threads": 0}, "num_threads=0: give a whole number, 1 or more"),
        ({"threads": 2}, "did you mean num_threads=2"),
    ],
)  # fmt: skip
def test_making(kwargs: dict, message: str) -> None:
    with pytest.raises(LakeError, match=message):
        gym.make(ID, **kwargs).reset()


@pytest.mark.parametrize("value", ["now", 3])
def test_autoreset_modes_are_named(value) -> None:
    with pytest.raises(LakeError, match=r"autoreset_mode=.*NextStep"):
        gym.make_vec(ID, num_envs=2, autoreset_mode=value)


def test_steps_are_counted_by_the_horizon() -> None:
    with pytest.raises(LakeError, match=r"max_episode_steps. \(did you mean horizon=9\?\)"):
        gym.make_vec(ID, num_envs=2, max_episode_steps=9)


def test_num_envs() -> None:
    with pytest.raises(LakeError, match="num_envs=0: give at least 1"):
        LakeBatch(LakeConfig(), 0)


def interfaces() -> list:
    return [
        (gym.make(ID, size=4, num_agents=2), np.zeros(2, int)),
        (gym.make_vec(ID, num_envs=2, size=4, num_agents=2), np.zeros((2, 2), int)),
        (mfl.parallel_vec_env(2, size=4, num_agents=2), np.zeros(4, int)),
    ]


@pytest.mark.parametrize(("env", "action"), interfaces(), ids=["single", "vector", "agents"])
def test_step_before_reset_and_bad_actions(env, action: np.ndarray) -> None:
    with pytest.raises(LakeError, match=r"step before reset.*call reset first"):
        env.step(action)
    env.reset(seed=0)
    for value in (5, -1, 260):
        wrong = action.copy()
        wrong.flat[1] = value
        with pytest.raises(LakeError, match=rf"action {value} of agent 1 in env 0: actions are 0 to 4"):
            env.step(wrong)
    with pytest.raises(LakeError, match="actions of type float64: give integers"):
        env.step(action.astype(float))
    assert env.unwrapped.batch.step_count[0] == 0, "a refused step must not have happened"
    env.step(action)


@pytest.mark.parametrize("action", [np.zeros(3, int), np.zeros((2, 2), int), 0])
def test_actions_of_the_wrong_shape(action) -> None:
    env = gym.make(ID, size=4, num_agents=2)
    env.reset(seed=0)
    with pytest.raises(LakeError, match=r"actions of shape .*: give \(1, 2\)"):
        env.step(action)


def test_parallel_forms() -> None:
    env = mfl.parallel_env(size=4, num_agents=2)
    with pytest.raises(LakeError, match="action for 'agent_0': live agents are none; call reset"):
        env.step({"agent_0": 0})
    env.reset(seed=0)
    with pytest.raises(LakeError, match="action for 'agent_7': live agents are agent_0, agent_1"):
        env.step({"agent_7": 0})
    with pytest.raises(LakeError, match="action 9 of agent 1"):
        env.step({"agent_1": 9})
    for wrong in (1.7, "1", None):
        with pytest.raises(LakeError, match=r"actions of type .*: give integers from 0 to 4"):
            env.step({"agent_0": wrong, "agent_1": 4})
    env.step({"agent_0": np.int8(1), "agent_1": np.array([4])})
    env.step({})


def test_a_tuple_has_an_action_for_each_agent() -> None:
    env = gym.make("MAPFFrozenLakeTuple-v0", size=4, num_agents=2)
    env.reset(seed=0)
    with pytest.raises(LakeError, match="1 actions: give one for each of the 2 agents"):
        env.step((1,))
    with pytest.raises(LakeError, match="actions of type float64: give integers"):
        env.step((1.7, 4))
    env.step(np.array([1, 4]))


@pytest.mark.parametrize("argument", [{"fixed_roster": False}, {"action_mask": "info"}])
def test_a_tuple_has_no_roster_or_mask_to_choose(argument: dict) -> None:
    with pytest.raises(mfl.LakeError, match=f"{next(iter(argument))}: every slot is an agent here"):
        gym.make("MAPFFrozenLakeTuple-v0", size=3, num_agents=2, **argument)


def test_step_after_the_end() -> None:
    env = gym.make(ID, size=4, num_agents=2, horizon=1)
    env.reset(seed=0)
    env.step(np.full(2, 4))
    with pytest.raises(LakeError, match="over: reset it"):
        env.step(np.full(2, 4))


def test_a_refused_step_begins_no_episode() -> None:
    """The next one does, and says that these agents did not move."""
    waits = np.full(4, 4)
    envs, twin = (mfl.parallel_vec_env(2, size=4, num_agents=2, horizon=2) for _ in range(2))
    for one in (envs, twin):
        one.reset(seed=0)
        one.step(waits), one.step(waits)
    with pytest.raises(LakeError, match="action 9 of agent 0 in env 1"):
        envs.step(np.array([4, 4, 9, 4]))
    for moved in (False, True):
        ours, theirs = envs.step(waits), twin.step(waits)
        assert ours[4]["moved"].all() == moved
        np.testing.assert_equal(ours, theirs)


def test_reset_options() -> None:
    env = gym.make(ID, size=4, num_agents=2)
    with pytest.raises(LakeError, match="unknown reset option 'lake': known are instance, config"):
        env.reset(options={"lake": 1})
    walled = np.zeros((3, 3), bool)
    walled[1] = True
    with pytest.raises(LakeError, match=r"agent 0 has no way from \(0, 0\) to its goal \(2, 2\)"):
        env.reset(options={"instance": Instance(holes=walled, starts=[(0, 0)], goals=[(2, 2)])})
    with pytest.raises(LakeError, match="instance='SFFG': give an Instance, or what"):
        env.reset(options={"instance": "SFFG"})


def test_masks_and_seeds_of_the_wrong_shape() -> None:
    envs = gym.make_vec(ID, num_envs=3, size=4, num_agents=2)
    with pytest.raises(LakeError, match=r"mask of bool\(2,\): give bool\(3,\)"):
        envs.reset(options={"reset_mask": np.ones(2, bool)})
    with pytest.raises(LakeError, match=r"mask of bool\(2,\): give bool\(3,\)"):
        envs.reset(seed=[1, 2, 3], options={"reset_mask": np.ones(2, bool)})
    agents = mfl.parallel_vec_env(3, size=4, num_agents=2)
    with pytest.raises(LakeError, match=r"reset_mask of shape \(3,\): give \(6,\), one for each agent slot"):
        agents.reset(options={"reset_mask": np.ones(3, bool)})
    agents.reset(seed=0)
    with pytest.raises(LakeError, match=r"actions of shape \(3,\): give \(6,\), one for each agent slot"):
        agents.step(np.zeros(3, int))
    with pytest.raises(LakeError, match="2 seeds: give one for each of the 3 envs"):
        envs.reset(seed=[1, 2])


def test_seeds_fit_64_bits() -> None:
    env, envs = gym.make(ID), gym.make_vec(ID, num_envs=2)
    seen, _ = env.reset(seed=2**64 - 2)
    np.testing.assert_array_equal(envs.reset(seed=2**64 - 2)[0][0], seen)
    assert not np.array_equal(env.reset(seed=2**63)[0], seen)
    with pytest.raises(LakeError, match=r"seeds=\[18446744073709551616\]: give integers below 2\*\*64"):
        env.reset(seed=2**64)


@pytest.mark.parametrize(
    ("starts", "says"),
    [
        (np.array([[65536, 0]]), r"starts=\[\[65536, 0\]\]: rows and columns are whole numbers from 0 to 63"),
        ([(0.7, 0)], r"starts=\[\[0\.7, 0\.0\]\]: rows and columns are whole numbers"),
        ([(0, 0), (1,)], r"starts=.*: give one \(row, col\) for each agent"),
        ([(0, 3)], r"agent 0's start \(0, 3\) is off the board"),
    ],
)
def test_cells_are_whole_numbers_on_the_board(starts, says: str) -> None:
    with pytest.raises(LakeError, match=says):
        Instance(holes=np.zeros((3, 3), bool), starts=starts, goals=[(1, 1)])


@pytest.mark.parametrize("name", [ID, "MAPFFrozenLakeText-v0"])
def test_rendering_before_reset(name: str) -> None:
    with pytest.raises(LakeError, match=r"render before reset: .* call reset first"):
        gym.make(name, render_mode="ansi").render()


def test_rendering_needs_a_mode() -> None:
    env = gym.make(ID)
    env.reset(seed=0)
    with pytest.raises(LakeError, match="render_mode=None: make the env with render_mode="):
        env.render()
    with pytest.raises(LakeError, match="render_mode=None"):
        env.unwrapped.save_animation("lake.gif")
