"""What agents see, against slow code that looks at the board cell by cell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mapf_frozenlake import LakeBatch, LakeConfig
from mapf_frozenlake.types import DELTAS
from tests.oracles.walks import distances

GRID = ("hole", "off_board", "self", "goal", "others", "others_goals")


def seen_by(batch: LakeBatch, env: int, agent: int) -> np.ndarray:
    """One agent's ego vector in float64, from the public arrays."""
    layout = batch.layout
    count = int(batch.active[env].sum())
    out = np.zeros(layout.size)
    if agent >= count:
        return out
    holes, radius = batch.holes(env), layout.window // 2
    cells = [tuple(cell) for cell in batch.positions[env, :count].tolist()]
    goals = [tuple(cell) for cell in batch.goals[env, :count].tolist()]
    way = distances(holes, goals[agent])
    window, features = layout.split(out)
    planes = dict(zip(layout.planes, window))
    hint = batch.get_config().hint_strength
    row, col = cells[agent]

    def ice(cell) -> bool:
        return on_board(cell) and not holes[cell]

    def on_board(cell) -> bool:
        return 0 <= cell[0] < holes.shape[0] and 0 <= cell[1] < holes.shape[1]

    for r in range(layout.window):
        for c in range(layout.window):
            cell = (row + r - radius, col + c - radius)
            planes["blocked"][r, c] = not ice(cell)
            if cell in cells and cell != cells[agent]:
                planes["others"][r, c] = 1.0 if cells.index(cell) < agent else 0.5
            planes["goal"][r, c] = cell == goals[agent]
            planes["others_goals"][r, c] = cell in goals and cell != goals[agent]
            if layout.hints:
                known = ice(cell) and way[cell] >= 0 and ice(cells[agent]) and way[cells[agent]] >= 0
                nearer = np.clip((way[cells[agent]] - way[cell]) / radius, -1, 1) if known else -1
                planes["way"][r, c] = hint * nearer
    named = dict.fromkeys(layout.features, 0.0)
    named["goal_row"] = (goals[agent][0] - row) / (batch.max_size - 1)
    named["goal_col"] = (goals[agent][1] - col) / (batch.max_size - 1)
    named["on_goal"] = cells[agent] == goals[agent]
    named["priority"] = (agent + 1) / batch.max_agents
    named["crowd"] = count / batch.max_agents
    named["time"] = batch.step_count[env] / batch.horizon[env]
    for action, (dr, dc) in enumerate(DELTAS.tolist()):
        target = (row + dr, col + dc)
        named[f"mask_{action}"] = on_board(target)
        if layout.hints:
            named[f"legal_{action}"] = hint * ice(target)
    features[:] = list(named.values())
    return out


@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**31), window=st.sampled_from([3, 5, 7, 11, 21]), hints=st.booleans(),
    strength=st.sampled_from([0.0, 0.3, 1.0]), autoreset=st.sampled_from(["next_step", "same_step"]),
    dtype=st.sampled_from(["float32", "int8"]),
)  # fmt: skip
def test_ego_is_what_an_agent_sees(seed, window, hints, strength, autoreset, dtype) -> None:
    config = LakeConfig(
        slices={3: {}, 6: {}, 8: {"hole_ratio": 0.3}}, num_agents={1: 1, 2: 1, 4: 1}, hint_strength=strength, horizon=9
    )
    n = 3
    batch = LakeBatch(
        config, n, window=window, hints=hints, max_size=9, max_agents=5, autoreset=autoreset, dtype=dtype,
        certify="reachable", pool_size=64,
    )  # fmt: skip
    batch.seed(np.arange(n) + seed)
    batch.reset()
    rng = np.random.default_rng(seed)
    for _ in range(25):
        for env in range(n):
            for agent in range(batch.max_agents):
                got = batch.observation[env, agent]
                want = seen_by(batch, env, agent)
                if dtype == "int8":
                    np.testing.assert_allclose(got / 127, want, atol=1.01 / 127)
                else:
                    np.testing.assert_allclose(got, want, atol=1e-6)
        batch.step(rng.integers(0, 5, (n, batch.max_agents)))


def test_a_crowd_is_seen_as_few_are() -> None:
    """Many agents and few are written in different ways."""
    config = LakeConfig.single(8, 20, hole_ratio=0.1, horizon=9)
    batch = LakeBatch(config, 2, window=11, certify="reachable", pool_size=8)
    batch.seed([3, 4])
    batch.reset()
    rng = np.random.default_rng(0)
    for _ in range(4):
        for env in range(2):
            for agent in range(20):
                np.testing.assert_allclose(batch.observation[env, agent], seen_by(batch, env, agent), atol=1e-6)
        batch.step(rng.integers(0, 5, (2, 20)))


@settings(max_examples=20)
@given(seed=st.integers(0, 2**31))
def test_grid_and_compact(seed: int) -> None:
    config = LakeConfig(slices={3: {}, 6: {}}, num_agents={1: 1, 4: 1})
    n = 4
    kwargs = {"max_size": 7, "max_agents": 5, "certify": "reachable", "pool_size": 64}
    grid = LakeBatch(config, n, observation="grid", **kwargs)
    compact = LakeBatch(config, n, observation="compact", **kwargs)
    rng = np.random.default_rng(seed)
    for batch in (grid, compact):
        batch.seed(np.arange(n) + seed)
        batch.reset()
    for _ in range(10):
        for env in range(n):
            holes, cells, goals = grid.holes(env), grid.positions[env], grid.goals[env]
            want_compact = np.concatenate([cells, goals], axis=1)
            np.testing.assert_array_equal(compact.observation[env], want_compact)
            count = int(grid.active[env].sum())
            for agent in range(5):
                planes = dict(zip(GRID, np.zeros((6, 7, 7))))
                if agent < count:
                    planes["off_board"][:] = 1
                    planes["off_board"][: holes.shape[0], : holes.shape[1]] = 0
                    planes["hole"][: holes.shape[0], : holes.shape[1]] = holes
                    for other in range(count):
                        planes["self" if other == agent else "others"][tuple(cells[other])] = 1
                        planes["goal" if other == agent else "others_goals"][tuple(goals[other])] = 1
                np.testing.assert_array_equal(grid.observation[env, agent], np.stack(list(planes.values())))
        actions = rng.integers(0, 5, (n, 5))
        grid.step(actions)
        compact.step(actions)


def test_masks_are_the_moves_that_stay_on_the_board() -> None:
    config = LakeConfig(slices={3: {}, 5: {}}, num_agents={1: 1, 3: 1})
    batch = LakeBatch(config, 32, observation="compact")
    batch.seed(np.arange(32))
    batch.reset()
    masks = batch.action_masks()
    for env in range(32):
        height, width = batch.holes(env).shape
        for agent in range(3):
            row, col = batch.positions[env, agent].tolist()
            want = [0 <= row + dr < height and 0 <= col + dc < width for dr, dc in DELTAS.tolist()]
            assert masks[env, agent].tolist() == (want if batch.active[env, agent] else [False] * 4 + [True])


def test_hints_can_be_blanked_and_their_channels_stay() -> None:
    on = LakeBatch(LakeConfig.single(5, 2), 8, hints=True)
    off = LakeBatch(LakeConfig.single(5, 2, hint_strength=0.0), 8, hints=True)
    bare = LakeBatch(LakeConfig.single(5, 2), 8, hints=False)
    for batch in (on, off, bare):
        batch.reset()
    assert on.observation.shape == off.observation.shape
    window, features = off.layout.split(off.observation)
    assert not window[:, :, off.layout.planes.index("way")].any()
    assert not features[..., -5:].any()
    assert on.layout.split(on.observation)[0][:, :, on.layout.planes.index("way")].any()
    assert on.layout.size - bare.layout.size == on.layout.window**2 + 5


def test_the_layout_finds_the_mask_in_the_vector() -> None:
    batch = LakeBatch(LakeConfig.single(4, 3), 16)
    batch.reset()
    np.testing.assert_array_equal(batch.layout.action_mask(batch.observation) > 0, batch.action_masks())


@pytest.mark.parametrize("window", [2, 4, 1, -3, 129])
def test_windows_have_a_middle(window: int) -> None:
    with pytest.raises(ValueError, match=f"window={window}: .* odd side from 3 to 127"):
        LakeBatch(LakeConfig.single(4, 2), window=window)
