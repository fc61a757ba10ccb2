"""Boards are replayed by their scores: what is played is what was chosen, scores add up, and exact regret is never negative."""

# ruff: noqa: E402
from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'mapf-frozenlake[rllib]'")

import mapf_frozenlake as mfl
from envtuning.trainees import make_trainee
from envtuning.trainees.lakes import sampler as samplers
from envtuning.trainees.lakes.levels import SCORES, LevelOptions, LevelReplay, column

CONFIG = mfl.LakeConfig.single(4, num_agents=2, hole_ratio=0.3, reward="sparse", collisions="end")
SMALL = {"num_envs": 16, "rollout": 24, "minibatch": 128, "hidden": (32,)}


def make(**levels):
    return make_trainee("ppo", room={"max_size": 4, "max_agents": 2}, seed=0, levels=levels, **SMALL)


def sampler_of(trainee):
    return samplers.sampler_of(trainee._lakes(CONFIG), trainee.options, 3)


def play(sampler, trainee):
    """One rollout, and the scores brought up to it."""
    options = trainee.options
    rollout, _ = sampler.sample(trainee.network)
    sampler.levels.learnt(rollout, options.gae_lambda, sampler.env.pool.arrays.makespan)


def test_an_env_plays_the_row_that_was_chosen_for_it():
    trainee = make(replay=0.7)
    sampler = sampler_of(trainee)
    for _ in range(3):
        play(sampler, trainee)
        rows = sampler.levels._playing
        boards = sampler.env.pool.arrays
        begun = sampler.env.step_count > 0  # one that has ended is on its old board until the next step
        for env in np.flatnonzero(begun & ~sampler.rollout.ended[-1]):
            assert sampler.env.instance(env) == boards[int(rows[env])]


def test_what_is_known_of_a_board_adds_up_over_rollouts():
    """Against a reading of the rollouts step by step."""
    trainee = make(replay=0.6, size=10_000)
    sampler, slow = sampler_of(trainee), defaultdict(lambda: defaultdict(float))
    gamma, lambda_ = trainee.options.gamma, trainee.options.gae_lambda
    for _ in range(4):
        play(sampler, trainee)
        roll, replay = sampler.rollout, sampler.levels
        for env in range(roll.moved.shape[1]):
            for agent in range(2):
                advantage = earned = 0.0
                for t in range(len(roll) - 1, -1, -1):
                    over = roll.ended[t, env]
                    later = 0.0 if roll.terminated[t, env] else roll.values[t + 1, env, agent]
                    surprise = roll.rewards[t, env, agent] + gamma * later - roll.values[t, env, agent]
                    advantage = surprise + (0.0 if over else gamma * lambda_ * advantage)
                    earned = roll.rewards[t, env, agent] + (0.0 if over else gamma * earned)
                    if not roll.moved[t, env]:
                        continue
                    seen = slow[int(replay._played[t, env])]
                    seen["moves"] += 1
                    seen["gain"] += max(advantage, 0.0)
                    seen["value"] += roll.values[t, env, agent]
                    seen["best"] = max(seen.get("best", -np.inf), earned)
                    if over and agent == 0:
                        seen["episodes"] += 1
                        seen["successes"] += bool(replay._won[t, env])
                        seen["discounted"] += replay._won[t, env] * gamma ** (replay._steps[t, env] - 1)
    assert sorted(slow) == sorted(replay._rows)
    for row, known in zip(replay._rows, replay._known, strict=True):
        for name in ("moves", "gain", "value", "best", "episodes", "successes", "discounted"):
            assert column(known[None], name)[0] == pytest.approx(slow[int(row)][name], abs=1e-3), name


def test_exact_regret_is_never_negative_and_none_where_the_best_plan_was_followed():
    trainee = make(score="regret")
    sampler = sampler_of(trainee)
    for _ in range(6):
        play(sampler, trainee)
    replay = sampler.levels
    assert (replay.scores() >= -1e-9).all()
    assert (column(replay._known, "successes") > 0).any()
    best = sampler.env.pool.arrays.makespan[replay._rows]
    gamma = replay.gamma
    followed = replay._known.copy()
    column(followed, "episodes")[:] = 1
    column(followed, "discounted")[:] = gamma ** (best - 1.0)
    replay._known = followed
    assert replay.scores() == pytest.approx(0.0, abs=1e-12)


def test_priorities_are_ranks_mixed_with_waiting():
    replay = LevelReplay(
        LevelOptions(score="learnability", rank_power=0.5, staleness=0.25),
        num_envs=1, pool_size=9, length=1, gamma=0.9, seed=[0],
    )  # fmt: skip
    replay._rows, replay._known = np.array([4, 7, 2]), np.zeros((3, 9))
    column(replay._known, "episodes")[:] = [9, 9, 9]
    column(replay._known, "successes")[:] = [9, 4.5, 1]  # ranks 3, 1, 2
    column(replay._known, "seen_at")[:] = [1, 3, 4]
    replay._clock = 4  # they have waited 3, 1 and 0
    expected = 0.75 * np.array([1 / 9, 1, 1 / 4]) / (1 + 1 / 4 + 1 / 9) + 0.25 * np.array([3 / 4, 1 / 4, 0])
    assert replay.priorities() == pytest.approx(expected)


def test_new_boards_are_dealt_as_often_as_asked_and_the_lowest_scores_are_forgotten():
    trainee = make(replay=0.0, plays=3, size=5, score="learnability")
    sampler = sampler_of(trainee)
    replay = sampler.levels
    assert sorted(replay._playing) == sorted([row for row in range(6) for _ in range(3)])[:16]
    for _ in range(5):
        play(sampler, trainee)
    assert len(replay._rows) == 5


@pytest.mark.parametrize("score", SCORES)
def test_training_with_replay_repeats(score):
    def history():
        seen = []
        make(score=score).train(CONFIG, 2000, seed=1, on_iteration=seen.append)
        return seen

    first = history()
    assert first == history()
    assert sum(done["env_steps"] for done in first) >= 2000
