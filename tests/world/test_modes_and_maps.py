"""Every interface takes every goal mode on every family of maps; new goals can be reached; nobody is lost from a window."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st
from pettingzoo.test import api_test, parallel_api_test

import mapf_frozenlake as mfl
from mapf_frozenlake import mapf_frozenlake_v0
from mapf_frozenlake.map_families import MAP_FAMILIES
from mapf_frozenlake.types import COLLISIONS, DELTAS, ON_GOAL, Action
from tests.oracles.goals import lake_of

ID = "MAPFFrozenLake-v0"
FIELDS: dict[str, dict[str, Any]] = {  # of small boards, one for each family
    "random": {"size": 5, "hole_ratio": 0.2},
    "maze": {"size": 5, "loops": 0.3},
    "rooms": {"size": 5, "room_size": 2},
    "warehouse": {"size": (5, 6), "shelf_length": 2},
}
EVERYWHERE = list(itertools.product(ON_GOAL, MAP_FAMILIES))


def kwargs_of(mode: str, family: str) -> dict[str, Any]:
    return {"on_goal": mode, "map_family": family, "num_agents": 2, "horizon": 12, "pool_size": 16} | FIELDS[family]


@pytest.fixture
def _as_pettingzoo_warns() -> Iterator[None]:
    """Its own test excepts its own games by name, and warns of others: of dicts, and of zeros, which an agent that has left sees."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for message in ("Observation space for each agent probably", "Observation is not a NumPy array", ".*all zeros"):
            warnings.filterwarnings("ignore", message=message, category=UserWarning)
        yield


@pytest.mark.usefixtures("_as_pettingzoo_warns")
@pytest.mark.parametrize(("mode", "family"), EVERYWHERE)
def test_gymnasium_and_pettingzoo_accept_it(mode: str, family: str) -> None:
    kwargs = kwargs_of(mode, family)
    check_env(gym.make(ID, **kwargs).unwrapped, skip_render_check=True)
    parallel_api_test(mfl.parallel_env(**kwargs), num_cycles=60)
    api_test(mapf_frozenlake_v0.env(**kwargs), num_cycles=60)


@pytest.mark.parametrize(("mode", "family"), EVERYWHERE)
def test_stable_baselines_accepts_it_and_its_own_interface_plays_the_same(mode: str, family: str) -> None:
    pytest.importorskip("stable_baselines3", reason="needs Stable-Baselines3: pip install stable-baselines3")
    from stable_baselines3.common import env_checker
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import DummyVecEnv

    kwargs = kwargs_of(mode, family) | {"window": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env_checker.check_env(gym.make(ID, flat=True, **kwargs).unwrapped)
    ours = mfl.sb3_vec_env(3, **kwargs)
    theirs = DummyVecEnv([lambda: Monitor(gym.make(ID, **kwargs)) for _ in range(3)])
    ours.seed(5), theirs.seed(5)
    np.testing.assert_array_equal(ours.reset(), theirs.reset())
    planner, last = mfl.OnlinePIBT(), []
    for _ in range(36):
        actions = planner.act_on(ours.lakes.batch)
        left, right = ours.step(actions), theirs.step(actions)
        for one, other in zip(left[:3], right[:3]):
            np.testing.assert_array_equal(one, other)
        for row in np.flatnonzero(left[2]):
            mine, other = left[3][row], right[3][row]
            del mine["episode"], other["episode"], other["events"]
            np.testing.assert_equal(mine, other)
            last.append(mine)
    assert len(last) >= 6
    assert all(info["slice"] == "5" for info in last)
    assert all(("throughput" in info) == (mode == "next") for info in last)
    assert any(info["success"] for info in last)


@pytest.mark.parametrize(("mode", "family"), EVERYWHERE)
def test_the_texts_play_what_the_numbers_play(mode: str, family: str) -> None:
    kwargs = kwargs_of(mode, family)
    text = gym.make("MAPFFrozenLakeText-v0", mode="turns", **kwargs).unwrapped
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(text, skip_render_check=True)
    numbers, planner, successes = gym.make(ID, **kwargs).unwrapped, mfl.OnlinePIBT(), 0
    for seed in range(4):
        said = text.reset(seed=seed)[0]
        numbers.reset(seed=seed)
        board = numbers.instance
        assert mfl.from_text(mfl.to_text(board)) == board == text.instance
        over = False
        while not over:
            actions = planner.act_on(numbers.batch)[0]
            reply = "\n".join(f"Agent {agent}: {Action(move).name}" for agent, move in enumerate(actions))
            said, *told, info = text.step(reply)
            _, *expected, expected_info = numbers.step(actions)
            assert told == expected
            over = told[1] or told[2]
            positions, goals = numbers.positions.tolist(), numbers.goals.tolist()
            for agent, there in enumerate(numbers.batch.active[0].tolist() if not over else ()):
                (row, col), goal = positions[agent], goals[agent]
                aims = ", on its goal." if goal == [row, col] else f"; its goal is ({goal[0]}, {goal[1]})."
                stands = f"Agent {agent} is at ({row}, {col}){aims}"
                assert (stands if there else f"Agent {agent} has left the board.") in said
            for key in expected_info:
                np.testing.assert_equal(info[key], expected_info[key])
        successes += info["success"]
    assert successes > 0
    if mode == "wait":
        plan = gym.make("MAPFFrozenLakeText-v0", **kwargs)
        plan.reset(seed=0)
        solution = mfl.solve(plan.unwrapped.instance)
        *_, info = plan.step(mfl.format_plan(solution.plan))
        assert (info["success"], info["optimal"], info["slice"]) == (True, True, "5")


@st.composite
def lifelong_boards(draw: st.DrawFn) -> mfl.Instance:
    """Any holes, so that there may be many lakes; each agent's start and goal are on one of them."""
    rows, columns = draw(st.integers(2, 8)), draw(st.integers(2, 8))
    holes = np.array(draw(st.lists(st.booleans(), min_size=rows * columns, max_size=rows * columns)))
    holes = holes.reshape(rows, columns)
    free = [tuple(cell) for cell in np.argwhere(~holes).tolist()]
    pairs: list[tuple[Any, Any]] = []
    for start in draw(st.permutations(free)) if free else ():
        taken = {cell for pair in pairs for cell in pair}
        others = sorted(lake_of(holes, start) - taken - {start})
        if start not in taken and others and len(pairs) < 5:
            pairs.append((start, draw(st.sampled_from(others))))
    if not pairs:
        return mfl.from_desc(["SG", "FF"])
    return mfl.Instance(holes, *zip(*pairs))


def play_and_check_goals(batch: mfl.LakeBatch, steps: int) -> int:
    """Lead the agents to their goals; every goal must be ice of the agent's lake, and a new one must be elsewhere."""
    planner, new = mfl.OnlinePIBT(), 0
    for _ in range(steps):
        before, resets = batch.goals, batch.finished
        batch.step(planner.act_on(batch))
        for env in range(batch.num_envs):
            holes = batch.holes(env)
            for agent in np.flatnonzero(batch.active[env]):
                cell, goal = tuple(batch.positions[env, agent].tolist()), tuple(batch.goals[env, agent].tolist())
                assert goal in lake_of(holes, cell)
                if batch.reached[env, agent] and not resets[env]:
                    assert cell == tuple(before[env, agent].tolist()) != goal
                    new += 1
    return new


@settings(max_examples=60)
@given(lifelong_boards(), st.integers(0, 2**63 - 1))
def test_new_goals_can_be_reached_on_any_board(board: mfl.Instance, seed: int) -> None:
    config = mfl.LakeConfig(num_agents=board.num_agents, on_goal="next", horizon=40)
    batch = mfl.LakeBatch(config, 1, instance=board, max_size=8, max_agents=5, observation="compact")
    batch.seed([seed % 2**31])
    batch.reset()
    play_and_check_goals(batch, 40)


@pytest.mark.parametrize("collisions", COLLISIONS)
@pytest.mark.parametrize("family", MAP_FAMILIES)
def test_new_goals_can_be_reached_on_every_family(family: str, collisions: str) -> None:
    kwargs = {key: value for key, value in kwargs_of("next", family).items() if key != "pool_size"}
    batch = mfl.LakeBatch(mfl.LakeConfig.single(**kwargs, collisions=collisions), 6, pool_size=16)
    batch.seed(np.arange(6))
    batch.reset()
    assert play_and_check_goals(batch, 40) > 30


# Rows of cells in which each is next to the one before: straight, bent, and back to the first (a ring).
PATHS = {
    "straight": [(2, column) for column in range(8)],
    "bent": [(1, 1), (1, 2), (2, 2), (2, 3), (3, 3), (3, 2), (4, 2), (4, 1)],
    "ring": [(1, 1), (1, 2), (1, 3), (2, 3), (3, 3), (3, 2), (3, 1), (2, 1)],
    "small ring": [(1, 1), (1, 2), (2, 2), (2, 1)],
    "long ring": [(1, 1), (1, 2), (1, 3), (2, 3), (2, 2), (2, 1)],
}


def numberings(agents: int) -> list[tuple[int, ...]]:
    """All orders of up to five agents; of more, 60 random ones with both that follow the row."""
    if agents <= 5:
        return list(itertools.permutations(range(agents)))
    rng = np.random.default_rng(agents)
    random = {tuple(rng.permutation(agents).tolist()) for _ in range(60)}
    return [tuple(range(agents)), tuple(reversed(range(agents))), *sorted(random)]


@cache
def chains_and_rings() -> list[tuple[mfl.Instance, list[int]]]:
    """Boards with 1 to 8 agents and their moves: each goes to the next one's cell, and the first wherever it likes.

    Where it goes is its goal, if nobody starts there.
    """
    moves = {(int(down), int(across)): action for action, (down, across) in enumerate(DELTAS)}
    far, drawn = [(6, column) for column in range(8)], []
    for path in PATHS.values():
        for agents in range(1, len(path) + 1):
            row = path[:agents]
            follow = [moves[b[0] - a[0], b[1] - a[1]] for a, b in itertools.pairwise(row)]
            for head in range(5):  # it leaves, is blocked by the border or by another agent, closes the ring, or waits
                ahead = (row[-1][0] + int(DELTAS[head][0]), row[-1][1] + int(DELTAS[head][1]))
                can_be_goal = ahead not in row and 0 <= ahead[0] < 8 and 0 <= ahead[1] < 8
                for order in numberings(agents):
                    cells, goals, actions = [(0, 0)] * agents, far[:agents], [0] * agents
                    for place, agent in enumerate(order):
                        cells[agent], actions[agent] = row[place], [*follow, head][place]
                    if can_be_goal:
                        goals[order[-1]] = ahead
                    drawn.append((mfl.Instance(np.zeros((8, 8), bool), cells, goals), actions))
    return drawn


@pytest.mark.parametrize("mode", ON_GOAL)
@pytest.mark.parametrize("collisions", COLLISIONS)
def test_nobody_is_lost_from_any_window_in_a_chain_or_ring(collisions: str, mode: str) -> None:
    """Whoever leads, however the agents are numbered. Each sees all others, and itself, where they stand."""
    boards, moves = zip(*chains_and_rings())
    actions = np.full((len(boards), 8), Action.WAIT)
    for env, row in enumerate(moves):
        actions[env, : len(row)] = row
    config = mfl.LakeConfig.single(8, 8, hole_ratio=0.0, collisions=collisions, on_goal=mode)
    for name in ("ego", "pogema", "grid"):
        kwargs = {} if name == "grid" else {"window": 15}
        batch = mfl.LakeBatch(
            config, len(boards), observation=name, dtype="int8", autoreset="disabled", certify="reachable", **kwargs
        )
        batch.reset(instances=boards)
        seen = batch.step(actions).observation
        arrived, expected = batch.reached.sum(axis=1), occupied(batch)
        assert arrived.any()
        left = arrived if mode == "finish" else 0
        assert (expected.sum(axis=(1, 2)) + left == [board.num_agents for board in boards]).all()
        for agent in range(8):
            there = batch.active[:, agent]
            np.testing.assert_array_equal(sees(batch, name, seen, agent)[there], expected[there])


def occupied(batch: mfl.LakeBatch) -> np.ndarray:
    """bool[n, 8, 8]: where the batch says that agents stand; two on one cell would be one too few."""
    board = np.zeros((batch.num_envs, 8, 8), bool)
    rows, slots = np.nonzero(batch.active)
    board[rows, *batch.positions[rows, slots].T] = True
    return board


def sees(batch: mfl.LakeBatch, name: str, seen: np.ndarray, agent: int) -> np.ndarray:
    """bool[n, 8, 8]: where this agent sees anybody; the windows reach over the whole board."""
    if name == "grid":
        return (seen[:, agent, 2] + seen[:, agent, 4]) > 0
    window = (batch.layout.split(seen)[0] if name == "ego" else seen)[:, agent, 1] > 0
    envs, (row, column) = np.arange(batch.num_envs), np.maximum(batch.positions[:, agent], 0).T
    if name == "ego":  # leaves out the agent itself
        assert not window[:, 7, 7].any()
        window[:, 7, 7] = True
    down, across = np.arange(8)[:, None], np.arange(8)
    return window[envs[:, None, None], 7 - row[:, None, None] + down, 7 - column[:, None, None] + across]
