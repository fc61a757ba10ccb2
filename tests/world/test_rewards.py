"""What steps pay, by the formulas, computed here with whole-number distances of their own."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mapf_frozenlake import Event, Instance, LakeBatch, LakeConfig
from mapf_frozenlake.types import VIOLATIONS
from tests.oracles.walks import distances


def expected(
    name: str, batch: LakeBatch, before: np.ndarray, events: np.ndarray, t: int, success: bool
) -> list[Fraction]:
    count = int(batch.active[0].sum())
    horizon = int(batch.horizon[0])
    fields = [distances(batch.holes(0), tuple(goal)) for goal in batch.goals[0, :count].tolist()]
    was = [int(field[tuple(cell)]) for field, cell in zip(fields, before[0].tolist())]
    now = [int(field[tuple(cell)]) for field, cell in zip(fields, batch.positions[0].tolist())]
    lawful = Fraction(sum(event not in VIOLATIONS for event in events[0, :count].tolist()), count)
    nearer = Fraction(sum(n >= 0 and (n == 0 or n < w) for w, n in zip(was, now)), count)
    rest = Fraction(horizon - t, horizon) if success else Fraction(0)
    if name == "sparse":
        return [Fraction(success)] * count
    if name == "progress":
        return [nearer * lawful / horizon + rest] * count
    if name == "legal":
        return [lawful / horizon + rest] * count
    scale = sum(batch.holes(0).shape)
    return [Fraction(w - n if n >= 0 else 0, scale) + success for w, n in zip(was, now)]


@pytest.mark.parametrize("name", ["sparse", "progress", "legal", "shaped"])
@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), agents=st.integers(1, 4))
def test_named_rewards_are_their_formulas(name: str, seed: int, agents: int) -> None:
    config = LakeConfig.single(4, agents, hole_ratio=0.25, reward=name)
    batch = LakeBatch(config, autoreset="disabled", max_agents=4, pool_size=256, certify="reachable")
    batch.seed([seed])
    batch.reset()
    rng = np.random.default_rng(seed)
    for t in range(1, 33):
        before = batch.positions
        result = batch.step(rng.integers(0, 5, (1, 4)))
        want = expected(name, batch, before, result.events, t, bool(result.terminated[0] and batch.success[0]))
        np.testing.assert_allclose(result.rewards[0], [*map(float, want), *[0.0] * (4 - agents)], atol=1e-15)
        if result.terminated[0] or result.truncated[0]:
            break


def test_a_perfect_episode_of_progress_is_worth_one() -> None:
    lake = Instance(holes=np.zeros((2, 4), bool), starts=[(0, 0), (1, 0)], goals=[(0, 3), (1, 3)])
    for name in ("progress", "legal"):
        batch = LakeBatch(LakeConfig.single(4, 2, reward=name), instance=lake)
        batch.reset()
        paid = sum(batch.step(np.array([[2, 2]])).rewards[0].copy() for _ in range(3))
        assert batch.success[0]
        np.testing.assert_allclose(paid, 1.0)


def test_shaped_telescopes() -> None:
    """An episode's shaped return is its sparse return plus the share of way gained."""
    lake = Instance(holes=np.zeros((4, 4), bool), starts=[(0, 0)], goals=[(3, 3)])
    batch = LakeBatch(LakeConfig.single(4, 1, reward="shaped"), instance=lake)
    batch.reset()
    total = 0.0
    for action in (2, 0, 1, 1, 2, 4, 3, 1, 1, 2, 2):
        total += batch.step(np.array([[action]])).rewards[0, 0]
    assert batch.success[0]
    assert total == pytest.approx(1 + 6 / 8)


def one_per_conflict(transition) -> np.ndarray:
    return -np.isin(transition.events, [Event.VERTEX, Event.SWAP]).astype(float) + transition.success[:, None]


def test_a_callable_is_paid_and_empty_slots_get_nothing() -> None:
    config = LakeConfig.single(3, {1: 1, 3: 1}, hole_ratio=0.0)
    batch = LakeBatch(config, 64, reward=one_per_conflict)
    batch.seed(np.arange(64))
    batch.reset()
    rng = np.random.default_rng(0)
    paid = 0.0
    for _ in range(30):
        fresh = batch.finished
        result = batch.step(rng.integers(0, 5, (64, 3)))
        conflicts = np.isin(result.events, [Event.VERTEX, Event.SWAP])
        won = (result.terminated & batch.success)[:, None]
        np.testing.assert_array_equal(
            result.rewards, np.where(batch.active & ~fresh[:, None], won - 1.0 * conflicts, 0)
        )
        paid += np.abs(result.rewards).sum()
    assert paid > 0


def test_a_callable_of_the_wrong_shape_is_refused() -> None:
    batch = LakeBatch(LakeConfig.single(3, 2), 4, reward=lambda transition: np.zeros(4))
    batch.reset()
    with pytest.raises(ValueError, match=r"returned shape \(4,\): it must be \(4, 2\)"):
        batch.step(np.zeros((4, 2), int))
