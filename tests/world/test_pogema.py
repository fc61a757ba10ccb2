"""The collision rules and the observation of POGEMA, against plain Python, and what every rule keeps."""

from __future__ import annotations

import itertools

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mapf_frozenlake as mfl
from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.types import COLLISIONS, Event
from tests.oracles import pogema

SYSTEMS = ("priority", "block_both", "soft")


@st.composite
def crowds(draw):
    """Holes, up to ten agents on a small board, and their actions."""
    rows, columns = draw(st.integers(2, 5)), draw(st.integers(2, 5))
    cells = draw(st.permutations([(r, c) for r in range(rows) for c in range(columns)]))
    agents = draw(st.integers(1, min(10, len(cells))))
    holes = np.zeros((rows, columns), bool)
    for cell in cells[agents : agents + draw(st.integers(0, 6))]:
        holes[cell] = True
    actions = draw(st.lists(st.integers(0, 4), min_size=agents, max_size=agents))
    return holes, cells[:agents], actions


@settings(max_examples=600)
@given(crowds(), st.sampled_from(SYSTEMS))
def test_each_rule_moves_agents_as_pogema_does(crowd, system):
    holes, cells, actions = crowd
    after, events = mfl.joint_move(holes, cells, actions, collisions=system)
    expected = pogema.step(holes, dict(enumerate(cells)), actions, system)
    assert [tuple(cell) for cell in after.tolist()] == [expected[agent] for agent in range(len(cells))]
    assert len(set(expected.values())) == len(cells), "no two agents on one cell"
    for agent, cell in enumerate(cells):
        target = (cell[0] + pogema.DELTAS[actions[agent]][0], cell[1] + pogema.DELTAS[actions[agent]][1])
        moved = expected[agent] == target
        wall = not (0 <= target[0] < holes.shape[0] and 0 <= target[1] < holes.shape[1]) or holes[target]
        assert (events[agent] == Event.NONE) == moved
        assert (events[agent] == Event.OFF_BOARD) == bool(wall)


def _rings_and_chains():
    """Cells of up to eight agents in a row along a ring of cells, and the actions that move each to the next cell."""
    ring = [(0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0)]
    square = [(0, 0), (0, 1), (1, 1), (1, 0)]
    for cells in (ring, square):
        steps = [
            pogema.DELTAS.index((b[0] - a[0], b[1] - a[1])) for a, b in zip(cells, cells[1:] + cells[:1], strict=True)
        ]
        for agents in range(1, len(cells) + 1):
            yield cells[:agents], steps[:agents]


@pytest.mark.parametrize("collisions", COLLISIONS)
@pytest.mark.parametrize("observation", ["ego", "grid", "pogema"])
def test_no_agent_is_lost_from_any_window_in_chains_and_rings(collisions, observation):
    """All chains and rings of up to eight agents, for every number of rotations of the agents' numbers, and reversed."""
    boards, moves = [], []
    for cells, steps in _rings_and_chains():
        for turned, back in itertools.product(range(len(cells)), (False, True)):
            order = [(turned + place) % len(cells) for place in range(len(cells))]
            order = order[::-1] if back else order
            free = [(r, c) for r in range(4) for c in range(4) if (r, c) not in {cells[k] for k in order}]
            boards.append(mfl.Instance(np.zeros((4, 4), bool), [cells[k] for k in order], free[: len(order)]))
            moves.append([steps[k] for k in order])
    batch = mfl.LakeBatch(
        mfl.LakeConfig.single(4, 8, hole_ratio=0.0, collisions=collisions), len(boards), observation=observation, window=7,
        dtype="int8", autoreset="disabled",
    )  # fmt: skip
    batch.reset(instances=boards)
    actions = np.full((len(boards), 8), 4)
    for row, move in enumerate(moves):
        actions[row, : len(move)] = move
    seen = batch.step(actions).observation
    for row, board in enumerate(boards):
        count = board.num_agents
        assert len({tuple(cell) for cell in batch.positions[row, :count].tolist()}) == count
        chain = [Event(event).name for event in batch.events[row, :count]]
        assert (set(chain) == {"NONE"}) or collisions in ("priority", "block_both"), chain
        for agent in range(count):
            if observation == "grid":
                where = np.argwhere(seen[row, agent, 2] + seen[row, agent, 4])
            else:
                plane = batch.layout.split(seen)[0][row, agent, 1] if observation == "ego" else seen[row, agent, 1]
                where = np.argwhere(plane) + batch.positions[row, agent] - 3
            others = {tuple(cell) for cell in where.tolist()} | {tuple(batch.positions[row, agent].tolist())}
            assert others == {tuple(cell) for cell in batch.positions[row, :count].tolist()}


@pytest.mark.parametrize("on_goal", ["wait", "finish", "next"])
@pytest.mark.parametrize(("system", "radius"), [("priority", 2), ("block_both", 4), ("soft", 8)])
def test_episodes_and_windows_are_those_of_pogema(system, radius, on_goal):
    config = mfl.LakeConfig.single(7, 6, hole_ratio=0.25, on_goal=on_goal, collisions=system, horizon=30)
    batch = mfl.LakeBatch(config, 16, observation="pogema", window=2 * radius + 1, max_size=8, pool_size=64)
    batch.seed(np.arange(16))
    seen, rng = batch.reset(), np.random.default_rng(0)
    for _ in range(70):
        resets, before = batch.finished, batch.positions
        actions = rng.integers(0, 5, (16, 6))
        seen = batch.step(actions).observation
        assert seen.shape == (16, 6, 3, 2 * radius + 1, 2 * radius + 1)
        for env in range(16):
            cells = {agent: tuple(cell) for agent, cell in enumerate(before[env].tolist()) if cell[0] >= 0}
            if not resets[env]:
                expected = pogema.step(batch.holes(env), cells, actions[env].tolist(), system)
                for agent, cell in expected.items():
                    left = on_goal == "finish" and batch.reached[env, agent]
                    assert left or tuple(batch.positions[env, agent]) == cell
            cells = {agent: tuple(cell) for agent, cell in enumerate(batch.positions[env].tolist()) if cell[0] >= 0}
            goals = {agent: tuple(batch.goals[env, agent].tolist()) for agent in cells}
            for agent in range(6):
                if agent in cells:
                    expected = pogema.window(batch.holes(env), cells, goals, agent, radius)
                    np.testing.assert_array_equal(seen[env, agent], expected)
                else:
                    assert not seen[env, agent].any()


def test_a_hole_is_a_wall_and_no_rule_of_pogema_ends_the_episode():
    for system in SYSTEMS:
        env = gym.make("MAPFFrozenLake-v0", desc=["SHG", "FFF"], collisions=system, horizon=9)
        env.reset(seed=0)
        _, _, terminated, _, info = env.step([2])
        assert (terminated, info["events"].tolist()) == (False, [Event.OFF_BOARD])
        for action in (1, 2, 2, 3):
            *_, terminated, _, info = env.step([action])
        assert (terminated, info["success"], info["valid"]) == (True, True, False)


def test_an_optimum_is_certified_only_where_agents_may_follow_each_other():
    for system, optimal in (("soft", True), ("priority", None), ("block_both", None)):
        instance = mfl.generate(mfl.LakeConfig.single(4, 1), 1)[0]
        env = gym.make("MAPFFrozenLake-v0", instance=instance, collisions=system)
        env.reset(seed=0)
        for move in mfl.solve(instance).plan[0]:
            info = env.step([move])[4]
        assert (info["valid"], info["optimal"]) == (True, optimal)


def test_texts_and_wrong_names_are_refused():
    with pytest.raises(LakeError, match="collisions='soft': the texts describe the lake's own rules"):
        gym.make("MAPFFrozenLakeText-v0", mode="turns", collisions="soft")
    with pytest.raises(LakeError, match="collisions='hard': input should be 'block', 'end', 'priority'"):
        gym.make("MAPFFrozenLake-v0", collisions="hard")
    with pytest.raises(LakeError, match="collisions='hard': give one of 'block'"):
        mfl.joint_move(np.zeros((2, 2), bool), [[0, 0]], [2], collisions="hard")


def test_a_policy_of_pogema_plays_unchanged_and_is_judged_by_what_its_agents_did():
    def act(observations):
        """Nearer to the goal, into walls and agents too; POGEMA's numbers of the actions."""
        actions = []
        for _, _, target in observations:
            down, right = np.argwhere(target)[0] - len(target) // 2
            actions.append((2 if down > 0 else 1) if down else (4 if right > 0 else 3) if right else 0)
        return actions

    policy = mfl.pogema_policy(act, obs_radius=2)
    boards = mfl.generate(mfl.LakeConfig.single(5, {1: 1, 3: 1}, hole_ratio=0.15), 60)
    rates = {}
    for system in ("block", *SYSTEMS):
        table = mfl.evaluate(policy, boards, config=mfl.LakeConfig(collisions=system, horizon=40))
        rates[system] = table.overall.valid
        failures = {record.failure for record in table.per_instance} - {None}
        assert failures <= (
            {"goal_missed"} if system != "block" else {"goal_missed", "hole", "conflict", "illegal_move"}
        )
    assert min(rates.values()) > 40
    for wrong in ([5], [0, 0], [-1]):
        with pytest.raises(LakeError, match="give one of POGEMA's actions 0 to 4 each"):
            mfl.evaluate(mfl.pogema_policy(lambda seen, wrong=wrong: wrong), [mfl.from_desc(["SG"] * 1 + ["FF"])])
