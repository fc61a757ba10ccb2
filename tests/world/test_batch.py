"""Episodes in a batch: what no action may bring about, what ends them, and that nothing but seed and number decides them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mapf_frozenlake import Event, Instance, LakeBatch, LakeConfig

WAIT = 4


@st.composite
def crowded_configs(draw: st.DrawFn) -> LakeConfig:
    size = draw(st.integers(3, 32))
    agents = draw(st.integers(1, min(64, size * size // 3)))
    return LakeConfig.single(
        size,
        agents,
        hole_ratio=draw(st.sampled_from([0.0, 0.05, 0.2] if agents < size else [0.0])),
        is_slippery=draw(st.booleans()),
        success_rate=draw(st.floats(0, 1)),
        collisions=draw(st.sampled_from(["block", "end"])),
        horizon=draw(st.integers(1, 30)),
        reward=draw(st.sampled_from(["sparse", "progress", "shaped", "legal"])),
    )


@settings(max_examples=60)
@given(crowded_configs(), st.integers(0, 2**31), st.sampled_from(["next_step", "same_step"]))
def test_whatever_agents_do_the_rules_hold(config: LakeConfig, seed: int, autoreset: str) -> None:
    n = 3
    batch = LakeBatch(
        config, n, observation="compact", autoreset=autoreset, certify="reachable", pool_size=16  # type: ignore[arg-type]
    )  # fmt: skip
    batch.seed(np.arange(n) + seed)
    batch.reset()
    rng = np.random.default_rng(seed)
    for _ in range(40):
        before, fresh, steps = batch.positions, batch.finished, batch.step_count.copy()
        result = batch.step(rng.integers(0, 5, (n, batch.max_agents)))
        after = batch.positions
        for env in range(n):
            active = batch.active[env]
            cells = [tuple(cell) for cell in after[env, active].tolist()]
            assert len(set(cells)) == len(cells), "two agents on one cell"
            _assert_occupancy_is_what_positions_say(batch, env)
            if fresh[env] or (autoreset == "same_step" and batch.step_count[env] == 0):
                continue
            assert batch.step_count[env] == steps[env] + 1
            moved = {(tuple(a), tuple(b)) for a, b in zip(before[env].tolist(), after[env].tolist()) if a != b}
            assert not any((b, a) in moved for a, b in moved), "an exchange"
            far = np.abs(after[env].astype(int) - before[env]).sum(axis=1).max()
            assert far <= 1
            fell = (result.events[env] == Event.HOLE).any()
            conflict = np.isin(result.events[env], [Event.VERTEX, Event.SWAP]).any()
            won = (after[env, active] == batch.goals[env, active]).all()
            ended = fell or won or (conflict and config.collisions == "end")
            assert result.terminated[env] == ended
            assert result.truncated[env] == (not ended and batch.step_count[env] >= config.horizon)
        assert (result.rewards[~batch.active] == 0).all()
        assert np.isfinite(result.rewards).all()


def _assert_occupancy_is_what_positions_say(batch: LakeBatch, env: int) -> None:
    state = batch._state
    expected = np.zeros_like(state.occupant[env])
    for agent in range(int(batch.active[env].sum())):
        expected[state.cells[env, agent]] = agent + 1
    assert (state.occupant[env] == expected).all()
    assert not state.claims[env].any()


def test_no_step_after_a_fall() -> None:
    holes = np.zeros((2, 3), bool)
    holes[0, 1] = True
    lake = Instance(holes=holes, starts=[(0, 0), (1, 0)], goals=[(0, 2), (1, 2)])
    batch = LakeBatch(LakeConfig.single(3, 2), autoreset="disabled", instance=lake)
    batch.reset()
    result = batch.step(np.array([[2, 2]]))
    assert result.terminated[0]
    assert result.events[0].tolist() == [Event.HOLE, Event.NONE]
    assert not batch.success[0]
    with pytest.raises(ValueError, match="env 0 is over: reset it"):
        batch.step(np.array([[WAIT, WAIT]]))


def corridor(length: int = 4, makespan: int | None = None) -> Instance:
    return Instance(holes=np.zeros((2, length), bool), starts=[(0, 0)], goals=[(0, length - 1)], makespan=makespan)


def play(instance: Instance, plan: list[list[int]], **rules) -> tuple[LakeBatch, list]:
    size = max(instance.height, instance.width)
    config = LakeConfig.single(max(size, 4), instance.num_agents, **rules)
    batch = LakeBatch(config, observation="compact", autoreset="disabled", instance=instance)
    batch.reset()
    return batch, [_kept(batch.step(np.array([actions]))) for actions in plan]


def _kept(result):
    return type(result)(*(part.copy() for part in result))


@pytest.mark.parametrize(
    ("makespan", "plan", "rules", "success", "valid", "optimal"),
    [
        (3, [[2], [2], [2]], {}, True, True, 1),
        (3, [[2], [WAIT], [2], [2]], {}, True, True, 0),
        (3, [[0], [2], [2], [2]], {}, True, False, 0),  # a move off the board is a violation, not an end
        (None, [[2], [2], [2]], {}, True, True, -1),
        (3, [[2], [2], [2]], {"is_slippery": True, "success_rate": 0.999999999}, True, True, -1),
        (3, [[WAIT], [WAIT]], {"horizon": 2}, False, False, 0),
    ],
)
def test_success_valid_optimal(makespan, plan, rules, success, valid, optimal) -> None:
    batch, results = play(corridor(makespan=makespan), plan, **rules)
    assert results[-1].terminated[0] == success
    assert results[-1].truncated[0] == (not success)
    assert (batch.success[0], batch.valid[0], batch.optimal[0]) == (success, valid, optimal)


def test_all_must_be_on_their_goals_at_once() -> None:
    lake = Instance(holes=np.zeros((3, 3), bool), starts=[(0, 0), (2, 0)], goals=[(0, 1), (2, 2)])
    _, results = play(lake, [[2, WAIT], [2, 2], [0, 2]])
    assert [bool(result.terminated[0]) for result in results] == [False, False, True]


@pytest.mark.parametrize(("collisions", "ends"), [("block", False), ("end", True)])
def test_collisions(collisions: str, ends: bool) -> None:
    lake = Instance(holes=np.zeros((2, 3), bool), starts=[(0, 0), (0, 2)], goals=[(1, 0), (1, 2)])
    batch, results = play(lake, [[2, 0]], collisions=collisions)
    assert results[0].terminated[0] == ends
    assert set(results[0].events[0].tolist()) == {Event.VERTEX}
    assert batch.positions[0].tolist() == [[0, 0], [0, 2]]


def test_horizon_defaults_to_four_times_height_plus_width() -> None:
    _batch, results = play(corridor(length=5), [[WAIT]] * 28)
    assert [bool(result.truncated[0]) for result in results] == [False] * 27 + [True]


def record(batch: LakeBatch, seeds: np.ndarray, actions: np.ndarray) -> list[list[np.ndarray]]:
    batch.seed(seeds)
    parts = [[batch.reset().copy()]]
    for action in actions:
        parts.append([part.copy() for part in batch.step(action)])
    return parts


@pytest.mark.parametrize("autoreset", ["next_step", "same_step"])
@pytest.mark.parametrize("observation", ["ego", "grid", "compact", "pogema"])
def test_batch_size_and_threads_do_not_enter(observation, autoreset) -> None:
    config = LakeConfig(
        slices={3: {"share": 0.5}, 5: {"share": 0.5}}, num_agents={1: 0.5, 3: 0.5}, is_slippery=True, reward="progress"
    )
    n, steps = 12, 60
    actions = np.random.default_rng(0).integers(0, 5, (steps, n, 3))
    kwargs = {"observation": observation, "autoreset": autoreset, "hints": True, "pool_size": 64}
    whole = record(LakeBatch(config, n, **kwargs), np.arange(n) + 5, actions)
    threaded = record(LakeBatch(config, n, num_threads=5, **kwargs), np.arange(n) + 5, actions)
    halves = [
        record(LakeBatch(config, 6, **kwargs), np.arange(6) + 5 + low, actions[:, low : low + 6]) for low in (0, 6)
    ]
    for step in range(steps + 1):
        for part in range(len(whole[step])):
            both = np.concatenate([half[step][part] for half in halves])
            np.testing.assert_array_equal(whole[step][part], threaded[step][part])
            np.testing.assert_array_equal(whole[step][part], both)
    assert sum(results[2].sum() for results in whole[1:]) > n, "some episodes must end for this to say much"


def test_episodes_follow_the_seed_and_their_number() -> None:
    batch = LakeBatch(LakeConfig.single(6, 2), 2, observation="grid", autoreset="disabled")
    batch.seed([3, 4])
    first = [batch.reset().copy() for _ in range(3)]
    batch.seed([4, 3])
    again = [batch.reset().copy() for _ in range(3)]
    for one, other in zip(first, again):
        np.testing.assert_array_equal(one, other[::-1])
    assert not np.array_equal(first[0], first[1])


def test_a_config_takes_effect_at_each_envs_next_reset() -> None:
    easy = LakeConfig.single(3, 1, horizon=5)
    hard = LakeConfig.single(6, 2, horizon=7, hole_ratio=0.0)
    batch = LakeBatch(easy, 2, max_size=6, max_agents=2, autoreset="disabled")
    batch.reset()
    batch.set_config(hard)
    assert batch.horizon.tolist() == [5, 5]
    batch.reset(np.array([False, True]))
    assert batch.horizon.tolist() == [5, 7]
    assert batch.active.tolist() == [[True, False], [True, True]]
    assert batch.get_config() == hard


def test_a_reward_that_needs_distances_may_come_later() -> None:
    batch = LakeBatch(LakeConfig.single(4, 2), 4)
    batch.reset()
    batch.reset(config=LakeConfig.single(4, 2, reward="shaped", hole_ratio=0.0))
    before = batch.positions
    result = batch.step(np.random.default_rng(0).integers(0, 5, (4, 2)))
    gained = np.abs(before - batch.goals).sum(-1) - np.abs(batch.positions - batch.goals).sum(-1)
    running = ~result.terminated
    np.testing.assert_allclose(result.rewards[running], gained[running] / 8)
    assert gained.any()


@pytest.mark.parametrize("autoreset", ["next_step", "same_step", "disabled"])
def test_empty_slots_are_paid_nothing_after_a_larger_crowd(autoreset: str) -> None:
    config = LakeConfig.single(3, {1: 1, 3: 1}, hole_ratio=0.0, horizon=2, reward="legal")
    batch = LakeBatch(config, 32, autoreset=autoreset, pool_size=64)  # type: ignore[arg-type]
    batch.seed(np.arange(32))
    batch.reset()
    rng, shrunk = np.random.default_rng(0), 0
    for _ in range(12):
        empty = ~batch.active
        result = batch.step(rng.integers(0, 5, (32, 3)))
        over = result.terminated | result.truncated
        still = empty if autoreset == "same_step" else ~batch.active  # a same-step reset shows the next episode's crowd
        assert not result.rewards[still].any()
        assert not result.events[still].any()
        if autoreset == "disabled" and over.any():
            batch.reset(over)
            shrunk += int((~batch.active & ~empty).sum())
    assert shrunk > 0 or autoreset != "disabled", "some episode must follow one with more agents"
