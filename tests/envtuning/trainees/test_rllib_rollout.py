"""What PPO learns from, against the definitions: advantages by the sum they abbreviate, actions by their chances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envtuning.trainees.lakes.rollout import Rollout, draw_actions, generalised_advantages


def advantage_by_definition(rewards, values, terminated, ended, gamma, lambda_, t):
    """Σ_k (γλ)^k δ_{t+k} over what is left of the episode (or of the rollout)."""
    total, weight = 0.0, 1.0
    for k in range(t, len(rewards)):
        beyond = 0.0 if terminated[k] else values[k + 1]
        total += weight * (rewards[k] + gamma * beyond - values[k])
        if ended[k]:
            break
        weight *= gamma * lambda_
    return total


@settings(max_examples=50)
@given(st.data(), st.integers(1, 8), st.floats(0, 1), st.floats(0, 1))
def test_advantages_are_the_discounted_surprises(data, length, gamma, lambda_):
    numbers = st.floats(-10, 10, width=32)
    rewards = np.array(data.draw(st.lists(numbers, min_size=length, max_size=length)), np.float32)
    values = np.array(data.draw(st.lists(numbers, min_size=length + 1, max_size=length + 1)), np.float32)
    kinds = data.draw(st.lists(st.sampled_from(["on", "terminated", "truncated"]), min_size=length, max_size=length))
    terminated = np.array([kind == "terminated" for kind in kinds])
    ended = np.array([kind != "on" for kind in kinds])
    found = generalised_advantages(
        rewards[:, None, None], values[:, None, None], terminated[:, None], ended[:, None], gamma, lambda_
    )
    for t in range(length):
        expected = advantage_by_definition(rewards, values, terminated, ended, gamma, lambda_, t)
        assert found[t, 0, 0] == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_lambda_1_without_critic_is_the_return():
    rewards = np.array([1, 2, 4, 8], np.float32)[:, None, None]
    ended = np.array([False, True, False, False])[:, None]
    found = generalised_advantages(rewards, np.zeros((5, 1, 1), np.float32), ended, ended, 1.0, 1.0)
    assert found[:, 0, 0].tolist() == [3, 2, 12, 8]


def test_actions_come_as_often_as_the_softmax_says():
    logits = np.array([[0.0, 1.0, -1.0, 2.0, 0.5]], np.float32).repeat(100_000, axis=0)
    chances = np.exp(logits[0]) / np.exp(logits[0]).sum()
    actions, log_probs = draw_actions(logits, np.random.default_rng(0).random(len(logits), dtype=np.float32))
    np.testing.assert_allclose(np.bincount(actions, minlength=5) / len(actions), chances, atol=0.006)
    np.testing.assert_allclose(log_probs, np.log(chances)[actions], rtol=1e-5)


@given(
    st.integers(0, 4), st.floats(0, 1, exclude_max=True, width=32), st.lists(st.floats(-5, 5), min_size=5, max_size=5)
)
def test_masked_actions_never_come(only, uniform, logits):
    row = np.full((1, 5), -1e9, np.float32)
    row[0, only] = logits[only]
    actions, log_probs = draw_actions(row, np.array([uniform], np.float32))
    assert actions[0] == only
    assert log_probs[0] == pytest.approx(0.0, abs=1e-6)


def test_draws_at_the_edges_give_possible_actions():
    row = np.array([[-1e9, 0.0, 0.0, -1e9, -1e9]], np.float32)
    assert draw_actions(row, np.array([0.0], np.float32))[0][0] == 1
    assert draw_actions(row, np.array([np.nextafter(np.float32(1), np.float32(0))], np.float32))[0][0] == 2


def test_experience_leaves_out_empty_slots_and_resets():
    rollout = Rollout.empty(length=3, num_envs=2, num_agents=2, row=1)
    rollout.rows[..., 0] = np.arange(16).reshape(4, 2, 2)
    rollout.moved[:] = [[True, True], [False, True], [True, True]]
    rollout.active[:] = [[True, True], [True, False]]
    rollout.rewards[:] = 1.0
    rollout.ended[0, 0] = rollout.terminated[0, 0] = True
    experience = rollout.experience(gamma=1.0, lambda_=1.0)
    assert experience["obs"][:, 0].tolist() == [0, 1, 2, 6, 8, 9, 10]
    assert experience["value_targets"].tolist() == [1, 1, 3, 2, 1, 1, 1]
    assert {len(column) for column in experience.values()} == {7}
