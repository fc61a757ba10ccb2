"""An agent on its goal stays, leaves the board, or gets a new goal: every interface against plain Python."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test

import mapf_frozenlake as mfl
from mapf_frozenlake import mapf_frozenlake_v0, render
from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.types import ON_GOAL
from tests.oracles.goals import Episode, lake_of

ID = "MAPFFrozenLake-v0"
MODES = ("finish", "next")
# name -> size, agents, holes, window, boards: few agents are written one by one, many by vector instructions
WORLDS = {
    "few": (5, 3, 0.2, 9, 12),
    "narrow": (4, 4, 0.1, 3, 12),
    "many": (9, 20, 0.1, 11, 4),
    "alone": (3, 1, 0.2, 5, 12),
}


def towards(batch, rng, chance=0.7):
    """Actions that mostly go to the goals: uniformly random ones reach few."""
    delta = batch.goals.astype(int) - batch.positions
    vertical = np.where(delta[..., 0] > 0, 1, 3)
    horizontal = np.where(delta[..., 1] > 0, 2, 0)
    along = np.where(
        (delta[..., 1] == 0) | ((delta[..., 0] != 0) & (rng.random(delta.shape[:2]) < 0.5)), vertical, horizontal
    )
    wild = rng.integers(0, 5, along.shape)
    return np.where(rng.random(along.shape) < chance, along, wild)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("mode", ON_GOAL)
def test_the_batch_plays_and_shows_what_plain_python_does(mode: str, world: str) -> None:
    size, agents, holes, window, boards = WORLDS[world]
    config = mfl.LakeConfig.single(size, agents, hole_ratio=holes, on_goal=mode, horizon=25)
    batch = mfl.LakeBatch(config, boards, window=window, pool_size=64, certify="reachable")
    batch.seed(np.arange(boards))
    rng = np.random.default_rng(0)
    goals_reached = ended = 0
    scores = set()
    batch.reset()
    episodes = [Episode(batch.instance(env), mode, 25) for env in range(boards)]
    for _ in range(120):
        actions = towards(batch, rng)
        resets = batch.finished
        result = batch.step(actions)
        planes, _ = batch.layout.split(result.observation)
        for env, episode in enumerate(episodes):
            if resets[env]:
                episode = episodes[env] = Episode(batch.instance(env), mode, 25)
            else:
                paid, terminated, truncated = episode.step(actions[env])
                assert result.rewards[env].tolist() == paid
                assert (bool(result.terminated[env]), bool(result.truncated[env])) == (terminated, truncated)
                goals_reached += sum(paid) if mode != "wait" else 0
                for agent in episode.gets_a_goal:
                    goal = tuple(batch.goals[env, agent].tolist())
                    assert goal != episode.goals[agent]
                    assert goal in lake_of(episode.holes, episode.cells[agent]), "a goal can be reached"
                    episode.goals[agent] = goal
                if episode.over:
                    ended += 1
                    assert bool(batch.success[env]) == episode.success
                    assert bool(batch.valid[env]) == (episode.success and not episode.violated)
                    assert mode == "wait" or batch.optimal[env] == -1
                    assert batch.score[env] == episode.score
                    scores.add(episode.score)
                    assert batch.throughput[env] == sum(episode.num_reached.values()) / 25
            assert batch.active[env].tolist() == [agent in episode.cells for agent in range(agents)]
            for agent in range(agents):
                assert tuple(batch.positions[env, agent]) == episode.cells.get(agent, (-1, -1))
                np.testing.assert_array_equal(planes[env, agent], episode.window(agent, window))
    assert ended > 12
    assert len(scores) > 1, "some agents arrive without a fault, and others do not"
    assert mode == "wait" or goals_reached > 50


@pytest.mark.parametrize("observation", ["grid", "compact"])
@pytest.mark.parametrize("mode", MODES)
def test_the_other_observations_show_the_same_agents_and_goals(mode: str, observation: str) -> None:
    config = mfl.LakeConfig.single(5, 3, hole_ratio=0.1, on_goal=mode, horizon=40)
    batch = mfl.LakeBatch(config, 8, observation=observation, pool_size=64)
    batch.seed(np.arange(8))
    batch.reset()
    rng, shared, left = np.random.default_rng(2), 0, 0
    for _ in range(80):
        seen = batch.step(towards(batch, rng)).observation
        for env in range(8):
            goals, cells, active = batch.goals[env], batch.positions[env], batch.active[env]
            left += int((~active).sum())
            shared += len({tuple(goal) for goal in goals[active].tolist()}) < active.sum()
            for agent in range(3):
                if observation == "compact":
                    assert seen[env, agent].tolist() == [*cells[agent], *goals[agent]]
                elif not active[agent]:
                    assert not seen[env, agent].any()
                else:
                    _, _, me, goal, others, their_goals = seen[env, agent]
                    there = [other for other in range(3) if other != agent and active[other]]
                    assert np.argwhere(me).tolist() == [cells[agent].tolist()]
                    assert np.argwhere(goal).tolist() == [goals[agent].tolist()]
                    assert {tuple(cell) for cell in np.argwhere(others)} == {tuple(cells[other]) for other in there}
                    assert {tuple(cell) for cell in np.argwhere(their_goals)} == {
                        tuple(goals[other]) for other in there
                    }
    assert left if mode == "finish" else shared


GOALS_OF_ENVS = """
import json, sys
import numpy as np
import mapf_frozenlake as mfl
config = mfl.LakeConfig.single(5, 2, hole_ratio=0.2, on_goal="next", horizon=30)
batch = mfl.LakeBatch(config, 6, pool_size=64, num_threads=int(sys.argv[1]))
batch.seed(np.arange(6))
batch.reset()
history = [batch.goals.tolist()]
for actions in np.load(sys.argv[2]):
    batch.step(actions)
    history.append(batch.goals.tolist())
print(json.dumps(history))
"""


def test_the_goals_are_the_same_alone_in_a_batch_in_threads_and_in_another_process(tmp_path) -> None:
    config = mfl.LakeConfig.single(5, 2, hole_ratio=0.2, on_goal="next", horizon=30)
    batch = mfl.LakeBatch(config, 6, pool_size=64)
    batch.seed(np.arange(6))
    batch.reset()
    rng, tape, history = np.random.default_rng(4), [], [batch.goals.tolist()]
    for _ in range(100):
        tape.append(towards(batch, rng, 0.9))
        batch.step(tape[-1])
        history.append(batch.goals.tolist())
    np.save(tmp_path / "tape.npy", np.array(tape))
    for threads in (1, 2):
        code = [sys.executable, "-c", GOALS_OF_ENVS, str(threads), str(tmp_path / "tape.npy")]
        assert json.loads(subprocess.run(code, capture_output=True, text=True, check=True).stdout) == history
    for env in range(6):
        alone = gym.make(ID, config=config, pool_size=64).unwrapped
        alone.reset(seed=env)
        goals, over = [alone.goals.tolist()], False
        for actions in tape:
            if over:
                alone.reset()
                over = False
            else:
                _, _, terminated, truncated, _ = alone.step(actions[env])
                over = terminated or truncated
            goals.append(alone.goals.tolist())
        assert goals == [step[env] for step in history]


def test_a_goal_depends_on_the_agent_and_its_count_not_on_when_it_was_reached() -> None:
    """Agents that dawdle get the same goals in the same order."""
    instance = mfl.from_desc(["SFFFFF", "FFFFFF", "FFFFFG"])

    def goals_of(seed: int, waits: int) -> list[list[int]]:
        env = gym.make(ID, instance=instance, on_goal="next", horizon=500).unwrapped
        env.reset(seed=seed)
        rng, seen = np.random.default_rng(0), []
        for step in range(400):
            action = 4 if step % (waits + 1) else towards(env.batch, rng, 1.0)[0, 0]
            if env.step([action])[1]:
                seen.append(env.goals[0].tolist())
        return seen[:10]

    assert len(goals_of(0, 2)) == 10
    assert goals_of(0, 0) == goals_of(0, 2) != goals_of(1, 0)


@pytest.mark.parametrize("observation", ["ego", "grid", "compact", "pogema"])
@pytest.mark.parametrize("mode", MODES)
def test_every_interface_in_every_mode(mode: str, observation: str) -> None:
    kwargs = {
        "size": 4, "num_agents": {2: 1, 3: 1}, "hole_ratio": 0.1, "on_goal": mode, "observation": observation, "pool_size": 64,
        "horizon": 20,
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        check_env(gym.make(ID, **kwargs).unwrapped, skip_render_check=True)
        parallel_api_test(mfl.parallel_env(**kwargs), num_cycles=200)
        parallel_api_test(mfl.parallel_env(**kwargs, fixed_roster=True, action_mask="info"), num_cycles=200)
        parallel_seed_test(lambda: mfl.parallel_env(**kwargs))
        api_test(mapf_frozenlake_v0.env(**kwargs), num_cycles=200)
    for autoreset in AutoresetMode:
        ours = gym.make_vec(ID, num_envs=4, autoreset_mode=autoreset, **kwargs)
        theirs = SyncVectorEnv([lambda: gym.make(ID, **kwargs)] * 4, autoreset_mode=autoreset)
        np.testing.assert_equal(ours.reset(seed=3), theirs.reset(seed=3))
        rng, told = np.random.default_rng(0), 0
        for _ in range(70):
            actions = towards(ours.unwrapped.batch, rng)
            left, right = ours.step(actions), theirs.step(actions)
            np.testing.assert_equal(left[:4], right[:4])
            infos = [one[4].get("final_info", one[4]) for one in (left, right)]
            assert infos[0].keys() == infos[1].keys()
            if "success" in infos[0]:
                for key in (
                    "success",
                    "valid",
                    "slice",
                    "_slice",
                    "failure",
                    "_failure",
                    *(("throughput", "_throughput") if mode == "next" else ()),
                ):
                    np.testing.assert_equal(infos[0][key], infos[1][key])
                told += "throughput" in infos[0]
            over = left[2] | left[3]
            if autoreset is AutoresetMode.DISABLED and over.any():
                both = [envs.reset(options={"reset_mask": over.copy()}) for envs in (ours, theirs)]
                np.testing.assert_equal(both[0][0], both[1][0])
        assert bool(told) == (mode == "next")


def test_in_pettingzoo_the_agents_shrink_as_they_arrive() -> None:
    board = mfl.from_desc(["SGF", "sFg"])
    env = mfl.parallel_env(instance=board, on_goal="finish")
    env.reset(seed=0)
    observations, rewards, terminated, truncated, infos = env.step({"agent_0": 2, "agent_1": 2})
    assert env.agents == ["agent_1"]
    assert (rewards, terminated) == ({"agent_0": 1.0, "agent_1": 0.0}, {"agent_0": True, "agent_1": False})
    assert not any(truncated.values())
    assert infos["agent_0"] == {"event": 0, "slice": None}
    assert set(observations) == {"agent_0", "agent_1"}
    with pytest.raises(LakeError, match="action for 'agent_0': live agents are agent_1"):
        env.step({"agent_0": 4})
    _, rewards, terminated, _, infos = env.step({"agent_1": 2})
    assert (env.agents, rewards, terminated) == ([], {"agent_1": 1.0}, {"agent_1": True})
    assert infos["agent_1"]["success"] is True
    assert env.instance == board, "the episode's board is known until the next one begins"


def test_an_agent_may_enter_the_goal_of_one_that_has_left() -> None:
    """Under "wait" it is blocked there."""
    board = mfl.Instance(holes=np.zeros((2, 4), bool), starts=[(0, 1), (0, 0)], goals=[(0, 2), (0, 3)])
    moves = [[2, 4], [4, 2], [4, 2], [4, 2]]
    for mode, arrives in (("wait", False), ("finish", True)):
        env = gym.make(ID, instance=board, on_goal=mode)
        env.reset(seed=0)
        results = [env.step(move) for move in moves if not env.unwrapped.batch.finished.any()]
        assert results[-1][4].get("success", False) is arrives


@pytest.mark.parametrize(("reward", "on_the_way"), [("sparse", 0.0), ("shaped", 1 / 5)])
def test_a_goal_reached_pays(reward: str, on_the_way: float) -> None:
    board = mfl.from_desc(["SFG", "FFF"])
    for mode in MODES:
        env = gym.make(ID, instance=board, on_goal=mode, reward=reward, horizon=8)
        env.reset(seed=0)
        paid = [env.step([2])[1], env.step([2])[1]]
        assert paid == pytest.approx([on_the_way, 1.0 + on_the_way])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reward", ["progress", "legal"])
def test_the_shared_rewards_stay_within_one(mode: str, reward: str) -> None:
    config = mfl.LakeConfig.single(5, 3, hole_ratio=0.1, on_goal=mode, reward=reward, horizon=20)
    batch = mfl.LakeBatch(config, 16, pool_size=64, autoreset="disabled")
    batch.reset()
    rng, total = np.random.default_rng(1), np.zeros(16)
    for _ in range(20):
        gone = ~batch.active
        batch.step(towards(batch, rng))
        assert not batch.rewards[gone].any(), "an agent that has left gets nothing"
        total += batch.team_reward
        if batch.finished.any():
            assert (total[batch.finished] <= 1 + 1e-9).all()
            if mode == "finish":
                lawful = batch.finished & batch.valid
                assert reward != "legal" or np.allclose(total[lawful], 1.0)
            total[batch.finished] = 0
            batch.reset(batch.finished)


def test_a_reward_of_ones_own_is_told_who_reached_its_goal() -> None:
    told = []

    def pay(transition):
        told.append((transition.reached.copy(), transition.active.copy(), transition.goals.copy()))
        return transition.reached.astype(float)

    for mode in ON_GOAL:
        env = gym.make(ID, desc=["SGF", "sFg"], on_goal=mode, reward=pay)
        env.reset(seed=0)
        assert env.step([2, 2])[1] == 0.5
        assert told[-1][0].tolist() == [[True, False]]
        assert env.step([4, 4])[1] == (0.5 if mode == "wait" else 0.0)
        assert told[-1][1].tolist() == [[mode != "finish", True]]


def test_the_throughput_is_goals_over_the_horizon() -> None:
    env = gym.make(ID, desc=["SG", "HH"], on_goal="next", horizon=6)  # the next goal is always the other cell
    env.reset(seed=0)
    paid = [env.step([[2, 0][step % 2]]) for step in range(6)]
    assert [one[1] for one in paid] == [1.0] * 6
    assert paid[-1][3]
    assert paid[-1][4]["throughput"] == 1.0
    assert (paid[-1][4]["success"], paid[-1][4]["valid"], paid[-1][4]["optimal"]) == (True, True, None)
    with_a_fall = gym.make(ID, desc=["SG", "HF"], on_goal="next", horizon=6)
    with_a_fall.reset(seed=0)
    assert with_a_fall.step([1])[4] | {"events": None} == {
        "events": None, "success": False, "is_success": False, "valid": False, "score": 0.0, "optimal": None, "slice": None, "failure": "hole", "throughput": 0.0,
    }  # fmt: skip


@pytest.mark.parametrize("per_agent", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_stable_baselines_gets_the_same_score(mode: str, per_agent: bool) -> None:
    pytest.importorskip("stable_baselines3", reason="needs Stable-Baselines3: pip install stable-baselines3")
    envs = mfl.sb3_vec_env(
        6, per_agent=per_agent, size=4, num_agents=2, hole_ratio=0.0, on_goal=mode, horizon=12, pool_size=64
    )
    envs.seed(0)
    envs.reset()
    rng, infos = np.random.default_rng(0), []
    for _ in range(40):
        actions = towards(envs.lakes.batch, rng)
        infos += envs.step(actions.reshape(-1) if per_agent else actions)[3]
    last = [info for info in infos if info]
    assert last
    assert all(("throughput" in info) == (mode == "next") and info["slice"] == "4" for info in last)
    assert mode == "finish" or any(info["throughput"] > 0 for info in last)


@pytest.mark.parametrize("mode", MODES)
def test_a_text_tells_the_mode_and_the_goals(mode: str) -> None:
    env = gym.make("MAPFFrozenLakeText-v0", mode="turns", desc=["SGF", "sFg"], on_goal=mode, horizon=6)
    observation, _ = env.reset(seed=0)
    assert {"finish": "leaves the board", "next": "gets a new goal"}[mode] in observation
    assert "still takes up its cell" not in observation
    observation, reward, *_ = env.step("Agent 0: RIGHT\nAgent 1: WAIT")
    assert reward == 0.5
    row, col = env.unwrapped.batch.goals[0, 0]
    assert (
        "Agent 0 has left the board." if mode == "finish" else f"Agent 0 is at (0, 1); its goal is ({row}, {col})."
    ) in observation
    observation, _, _, _, info = env.step("Agent 0: UP\nAgent 1: DOWN")
    assert "Agent 1 at (1, 0) moved DOWN, off the board" in observation
    assert ("Agent 0 at (0, 1) moved UP" in observation) == (mode == "next")
    for _ in range(4):
        *_, info = env.step("Agent 0: WAIT\nAgent 1: WAIT")
    assert info["success"] is False
    short = gym.make("MAPFFrozenLakeText-v0", mode="turns", style="short", desc=["SGF", "sFg"], on_goal=mode)
    short.reset(seed=0)
    goals = env.unwrapped.batch.goals[0]
    said = short.step("Agent 0: RIGHT\nAgent 1: WAIT")[0]
    assert said == (
        "Step 1 20: -1 -1 1 0" if mode == "finish" else f"Step 1 20: 0 1 1 0; {row} {col} {goals[1, 0]} {goals[1, 1]}"
    )


def test_a_whole_plan_is_refused_where_goals_change() -> None:
    for mode in MODES:
        with pytest.raises(LakeError, match=f"on_goal='{mode}' is played step by step.*use mode='turns'"):
            gym.make("MAPFFrozenLakeText-v0", on_goal=mode)
    with pytest.raises(LakeError, match="on_goal='restart': input should be 'wait', 'finish' or 'next'"):
        gym.make(ID, on_goal="restart")


@pytest.mark.parametrize("mode", MODES)
def test_pictures_follow(mode: str, tmp_path) -> None:
    env = gym.make(ID, desc=["SGF", "sFg"], on_goal=mode, render_mode="ansi", horizon=5)
    env.reset(seed=0)
    env.step([2, 4])
    shown = env.render()
    assert ("0" in shown.splitlines()[0]) == (mode == "next")
    env.unwrapped.save_animation(tmp_path / "film.svg")
    film = (tmp_path / "film.svg").read_text()
    # The goal's flag is shown until it is reached; then the agent and its flag are gone, or there is another flag.
    assert film.count('attributeName="opacity"') == 2
    assert render.rgb_array(env.unwrapped._recorder.frames()[-1]).shape[2] == 3


def test_modes_change_with_the_config_and_survive_pickling() -> None:
    env = gym.make(ID, size=4, num_agents=2, pool_size=32)
    env.reset(seed=0)
    for mode in ("next", "finish", "wait", "next"):
        env.unwrapped.set_config(mfl.LakeConfig.single(4, 2, hole_ratio=0.0, on_goal=mode, horizon=12))
        env.reset()
        twin = pickle.loads(pickle.dumps(env))
        rng = np.random.default_rng(0)
        over = False
        while not over:
            action = towards(env.unwrapped.batch, rng)[0]
            one, other = env.step(action), twin.step(action)
            np.testing.assert_equal(one, other)
            over = one[2] or one[3]
        assert ("throughput" in one[4]) == (mode == "next")


def test_older_configs_keep_their_texts() -> None:
    assert "on_goal" not in mfl.LakeConfig().model_dump()
    assert mfl.LakeConfig(on_goal="next").model_dump()["on_goal"] == "next"
    config = mfl.LakeConfig(on_goal="finish")
    assert mfl.LakeConfig.model_validate_json(config.model_dump_json()) == config != mfl.LakeConfig()
    assert config.digest != mfl.LakeConfig().digest
