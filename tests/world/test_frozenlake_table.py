"""With one agent the lake is Gymnasium's FrozenLake: its transition table, entry by entry."""

from __future__ import annotations

from collections import defaultdict

import gymnasium as gym
import numpy as np
import pytest
from numba import njit

from mapf_frozenlake import Event, joint_move
from mapf_frozenlake.config import LakeConfig
from mapf_frozenlake.types import Instance
from mapf_frozenlake.world.batch import LakeBatch
from mapf_frozenlake.world.move import slipped as slipped_part


@njit
def slipped(action, draw, ahead):
    return slipped_part(action, draw, ahead)


def turns(action: int, ahead: float) -> dict[int, float]:
    """What an intended action becomes and how often, read off the kernel by bisecting its slip draw."""

    def first_draw_beyond(low: float, value: int) -> float:
        high = 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if slipped(action, middle, ahead) == value else (low, middle)
        return high

    chances: dict[int, float] = defaultdict(float)
    draw = 0.0
    while draw < 1.0:
        value = slipped(action, draw, ahead)
        end = first_draw_beyond(draw, value)
        chances[value] += end - draw
        draw = end
    return dict(chances)


def table(desc: np.ndarray, ahead: float) -> dict[int, dict[int, dict[tuple[int, float, bool], float]]]:
    """State → action → {(next state, reward, terminated): probability}, by playing every cell, action and turn."""
    height, width = desc.shape
    holes = desc == b"H"
    goal = tuple(np.argwhere(desc == b"G")[0])
    entries: dict = {}
    for state in range(height * width):
        cell = divmod(state, width)
        entries[state] = {}
        for action in range(4):
            outcomes: dict[tuple[int, float, bool], float] = defaultdict(float)
            if holes[cell] or cell == goal:
                outcomes[state, 0.0, True] = 1.0  # an episode that is over stays where it is
            else:
                for taken, chance in (turns(action, ahead) if ahead < 1 else {action: 1.0}).items():
                    after, events = joint_move(holes, np.array([cell]), np.array([taken]))
                    row, col = after[0].tolist()
                    fell, won = events[0] == Event.HOLE, (row, col) == goal
                    outcomes[row * width + col, float(won), bool(fell or won)] += chance
            entries[state][action] = dict(outcomes)
    return entries


@pytest.mark.parametrize("success_rate", [1 / 3, 0.7])
@pytest.mark.parametrize("slippery", [False, True])
@pytest.mark.parametrize("name", ["4x4", "8x8"])
def test_transition_table_is_frozenlakes(name: str, slippery: bool, success_rate: float) -> None:
    lake = gym.make("FrozenLake-v1", map_name=name, is_slippery=slippery, success_rate=success_rate).unwrapped
    ours = table(lake.desc, success_rate if slippery else 1.0)
    assert ours.keys() == lake.P.keys()
    for state, actions in lake.P.items():
        for action, entries in actions.items():
            theirs: dict[tuple[int, float, bool], float] = defaultdict(float)
            for probability, after, reward, terminated in entries:
                theirs[int(after), float(reward), bool(terminated)] += probability
            assert ours[state][action] == pytest.approx(dict(theirs), abs=1e-12), (state, action)


@pytest.mark.parametrize("collisions", ["block", "end"])
def test_the_batch_plays_the_table(collisions: str) -> None:
    """Cell by cell and action by action, stepping the env itself gives the table's reward and ending."""
    lake = gym.make("FrozenLake-v1", map_name="8x8", is_slippery=False).unwrapped
    holes, goal = lake.desc == b"H", (7, 7)
    batch = LakeBatch(
        LakeConfig.single(8, 1, collisions=collisions), observation="compact", autoreset="disabled", max_size=8
    )
    for state in range(63):
        cell = divmod(state, 8)
        if holes[cell]:
            continue
        for action in range(4):
            batch.reset(instances=Instance(holes=holes, starts=[cell], goals=[goal]))
            result = batch.step(np.array([[action]]))
            ((_, after, reward, terminated),) = lake.P[state][action]
            assert batch.positions[0, 0].tolist() == list(divmod(int(after), 8))
            assert (result.rewards[0, 0], result.terminated[0]) == (reward, terminated)


def test_slips_happen_as_often_as_they_should() -> None:
    """A statistical look at the whole path, key to cell: chances within five standard errors."""
    n = 30_000
    config = LakeConfig.single(3, 1, hole_ratio=0.0, is_slippery=True, success_rate=0.5)
    batch = LakeBatch(config, n, observation="compact", autoreset="disabled")
    centre = Instance(holes=np.zeros((3, 3), bool), starts=[(1, 1)], goals=[(0, 0)])
    batch.seed(np.arange(n))
    batch.reset(instances=centre)
    batch.step(np.full((n, 1), 2))  # right: ahead (1, 2), aside (2, 1) and (0, 1)
    for cell, chance in (((1, 2), 0.5), ((2, 1), 0.25), ((0, 1), 0.25)):
        share = (batch.positions[:, 0] == cell).all(axis=1).mean()
        assert abs(share - chance) < 5 * np.sqrt(chance * (1 - chance) / n)
