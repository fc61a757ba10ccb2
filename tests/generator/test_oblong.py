"""Lakes that are no squares: drawn uniformly, certified exactly, played by every interface, and squares are as they were."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations, permutations

import gymnasium as gym
import numpy as np
import pytest

import mapf_frozenlake as mfl


def one_can_walk(holes, start, goal) -> bool:
    """Flood the ice from the start, a cell's neighbours at a time."""
    wet = {start}
    for _ in range(holes.size):
        wet |= {
            (row + down, col + right)
            for row, col in wet
            for down, right in ((0, 1), (0, -1), (1, 0), (-1, 0))
            if 0 <= row + down < holes.shape[0]
            and 0 <= col + right < holes.shape[1]
            and not holes[row + down, col + right]
        }
    return goal in wet


def every_board(height: int, width: int, holes: int) -> set[bytes]:
    """The keys of all boards for one agent on which it can reach its goal, by trying all."""
    cells = [(row, col) for row in range(height) for col in range(width)]
    fitting = set()
    for start, goal in permutations(cells, 2):
        for dug in combinations([cell for cell in cells if cell not in (start, goal)], holes):
            board = np.zeros((height, width), bool)
            for cell in dug:
                board[cell] = True
            instance = mfl.Instance(holes=board, starts=[start], goals=[goal])
            if one_can_walk(board, start, goal):
                fitting.add(instance.key())
    return fitting


@pytest.mark.parametrize(("size", "least"), [((2, 3), 1), ((3, 2), 1), ((2, 4), 4)])
def test_boards_are_uniform(size, least) -> None:
    config = mfl.LakeConfig.single(size, 1, hole_ratio=0.25, min_distance=least)
    fitting = every_board(*size, holes=mfl.generate(config, 1)[0].holes.sum())
    fitting = {key for key in fitting if distance(key) >= least}
    n = 30 * len(fitting)
    came = Counter(instance.key() for instance in mfl.generate(config, n, seed=5))
    assert set(came) <= fitting
    chi_square = sum((came[key] - 30) ** 2 / 30 for key in fitting)
    assert abs(chi_square - len(fitting) + 1) < 4 * math.sqrt(2 * len(fitting) - 2)


def distance(key: bytes) -> int:
    """Manhattan distance of the one agent of a board's key, whose last eight bytes are its two cells."""
    row, col, goal_row, goal_col = np.frombuffer(key[-8:], np.int16).tolist()
    return abs(row - goal_row) + abs(col - goal_col)


def test_they_are_certified_and_keep_their_quotas(tmp_path) -> None:
    config = mfl.LakeConfig(slices={3: {"width": 6, "wait_ratio": 0.5}, 5: {"hole_ratio": 0.3}}, num_agents=3)
    drawn = mfl.generate(config, 40, seed=2)
    oblong = drawn.heights == 3
    assert oblong.sum() == 20
    assert set(drawn.widths[oblong].tolist()) == {6}
    assert set(drawn.widths[~oblong].tolist()) == {5}
    assert drawn.needs_wait[oblong].sum() == 10
    for instance in drawn:
        assert mfl.solve(instance).makespan == instance.makespan
    assert mfl.InstanceSet.load(drawn.save(tmp_path / "boards.lakes")) == drawn


@pytest.mark.parametrize("observation", ["ego", "grid", "compact", "pogema"])
def test_every_form_plays_them(observation) -> None:
    env = gym.make("MAPFFrozenLake-v0", size=(3, 6), num_agents=2, observation=observation)
    seen, _ = env.reset(seed=0)
    assert env.observation_space.contains(seen)
    instance = env.unwrapped.instance
    assert instance.holes.shape == (3, 6)
    assert env.unwrapped.batch.horizon[0] == 4 * (3 + 6)
    plan = mfl.solve(instance).plan
    for step in range(instance.makespan):
        *_, info = env.step([moves[step] if step < len(moves) else 4 for moves in plan])
    assert info["optimal"]
    text = gym.make("MAPFFrozenLakeText-v0", size=(3, 6), num_agents=2)
    question, _ = text.reset(seed=0)
    assert mfl.from_text(question) == instance


def test_bounds_count_both_sides() -> None:
    with pytest.raises(ValueError, match="num_agents=4 on a 2×3 lake needs 8 cells, there are 6: at most 3 agents"):
        mfl.LakeConfig.single((2, 3), 4)
    with pytest.raises(ValueError, match="min_distance=4 on a 2×3 lake: cells are at most 3 apart"):
        mfl.LakeConfig.single((2, 3), 1, min_distance=4)
    assert mfl.LakeConfig.single((3, 9), 1).max_size == 9


def test_configs_of_squares_are_written_as_they_always_were() -> None:
    """Digests name pools, suites and runs: recorded before widths were known."""
    assert mfl.LakeConfig().digest == "5cddf534628e879d"
    mixed = mfl.LakeConfig.single(8, {2: 1, 3: 2}, wait_ratio=0.5, min_distance=3)
    assert mixed.digest == "f1f140b75cc11d37"
    assert "width" not in mixed.canonical_json()
    oblong = mfl.LakeConfig.single((3, 6), 2)
    assert mfl.LakeConfig.model_validate_json(oblong.canonical_json()) == oblong
    assert oblong != mfl.LakeConfig.single(3, 2)
    assert mfl.LakeConfig.single((5, 5), 2) == mfl.LakeConfig.single(5, 2)
