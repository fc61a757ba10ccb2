"""Boards are replayed by their scores: number by number on a few boards that are known, and over rollouts that are played."""

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
    return make_trainee("ppo", capacity={"max_size": 4, "max_agents": 2}, seed=0, levels=levels, **SMALL)


def sampler_of(trainee):
    return samplers.sampler_of(trainee._lakes(CONFIG), trainee.options, 3)


def play(sampler, trainee):
    sampler.experience(trainee.network, trainee.options)


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


# --- on what is known of a few boards


def replay(score="regret", *, num_envs=4, pool_size=5, seed=0, **options):
    given = LevelOptions(score=score, **options)
    return LevelReplay(given, num_envs=num_envs, pool_size=pool_size, length=3, gamma=0.5, seed=[seed])


def knowing(score, rows=(0, 1), **columns):
    one = replay(score)
    one._rows, one._known = np.array(rows), np.zeros((len(rows), 9))
    for name, values in columns.items():
        column(one._known, name)[:] = values
    return one


def test_the_defaults_are_the_measured_ones_and_bounds_are_kept():
    assert LevelOptions().model_dump() == {
        "score": "regret", "replay": 0.5, "plays": 1, "size": 2048, "rank_power": 0.3, "staleness": 0.1,
    }  # fmt: skip
    for name, taken, refused in [
        ("replay", (0, 0.99), (-0.01, 1)), ("plays", (1, 2), (0,)), ("size", (1, 2), (0,)),
        ("rank_power", (0.01, 2), (0, -1)), ("staleness", (0, 1), (-0.01, 1.01)), ("other", (), (1,)),
    ]:  # fmt: skip
        assert all(getattr(LevelOptions(**{name: value}), name) == value for value in taken)
        for value in refused:
            with pytest.raises(ValueError, match=name):
                LevelOptions(**{name: value})
    with pytest.raises(ValueError, match="frozen"):
        LevelOptions().plays = 3
    assert LevelOptions().certificate == "exact"
    assert LevelOptions(score="learnability").certificate is None


@pytest.mark.parametrize(
    ("score", "known", "expected"),
    [
        ("regret", {"episodes": [4, 1], "discounted": [1.0, 0.5], "optimum": [0.5, 0.5]}, [0.25, 0.0]),
        ("regret", {"episodes": [0, 2], "discounted": [0.0, 0.0], "optimum": [0.5, 0.5]}, [0.0, 0.5]),
        ("positive_value_loss", {"gain": [3.0, 3.0], "moves": [6, 0]}, [0.5, 3.0]),
        ("positive_value_loss", {"gain": [3.0, 3.0], "moves": [1, 2]}, [3.0, 1.5]),
        ("max_monte_carlo", {"best": [2.0, -np.inf], "value": [3.0, 3.0], "moves": [6, 6]}, [1.5, 0.0]),
        ("max_monte_carlo", {"best": [2.0, 1.0], "value": [3.0, 3.0], "moves": [0, 1]}, [-1.0, -2.0]),
        ("learnability", {"successes": [0, 1], "episodes": [0, 3]}, [0.25, 0.375 * 0.625]),
    ],
)
def test_a_score_is_its_formula(score, known, expected):
    assert knowing(score, **known).scores() == pytest.approx(expected)


def test_new_boards_are_dealt_in_order_each_so_often_and_the_pool_is_gone_through_again():
    one = replay(replay=0.0, plays=2, pool_size=3)
    assert one.choose(np.arange(4)).tolist() == [0, 0, 1, 1]
    assert one.choose(np.array([1, 3])).tolist() == [2, 2]
    assert one._playing.tolist() == [0, 2, 1, 2]
    assert one.choose(np.arange(4)).tolist() == [0, 0, 1, 1]


def test_before_anything_was_played_every_board_is_new():
    assert replay(replay=0.9).choose(np.arange(4)).tolist() == [0, 1, 2, 3]


def test_known_boards_come_as_often_as_asked_and_by_their_priorities_and_the_seed():
    def dealt(seed):
        one = knowing("learnability", rows=(7, 8), successes=[1, 0], episodes=[2, 50])
        one.options = LevelOptions(score="learnability", replay=0.75, rank_power=1.0, staleness=0.0)
        one._playing, one.pool_size = np.zeros(3_000, np.int64), 10**6
        one._random = replay(seed=seed)._random
        return one.choose(np.arange(3_000))

    rows = dealt(1)
    known = np.isin(rows, [7, 8])
    assert 0.72 < known.mean() < 0.78
    assert 0.63 < (rows[known] == 7).mean() < 0.70  # ranks 1 and 2: chances of two thirds and one third
    assert (rows == dealt(1)).all()
    assert (rows != dealt(2)).any()


def test_those_not_seen_for_long_come_first_among_equals():
    one = knowing("learnability", rows=(7, 8, 9), seen_at=[4, 2, 1])
    one._clock = 5
    one.options = LevelOptions(score="learnability", staleness=1.0)
    assert one.priorities() == pytest.approx([1 / 8, 3 / 8, 4 / 8])
    column(one._known, "seen_at")[:] = [5, 4, 5]
    assert one.priorities() == pytest.approx([0, 1, 0])
    column(one._known, "seen_at")[:] = 5
    assert one.priorities() == pytest.approx([1 / 3] * 3)


def test_of_equal_scores_those_known_longer_rank_higher():
    one = knowing("learnability", rows=range(100), successes=[0, 1] * 50, episodes=[0, 1] * 50)
    one.options = LevelOptions(score="learnability", staleness=0.0)
    chances = one.priorities()
    assert (np.diff(chances[::2]) < 0).all()
    assert (np.diff(chances[1::2]) < 0).all()


def test_the_lowest_scores_are_forgotten_and_of_equals_those_seen_longest_ago():
    one = knowing(
        "positive_value_loss", rows=(5, 6, 7, 8), gain=[1.0, 2.0, 1.0, 1.0], moves=[1] * 4, seen_at=[3, 1, 1, 2]
    )
    one.options = LevelOptions(score="positive_value_loss", size=3)
    one._forget()
    assert sorted(one._rows) == [5, 6, 8]
    kept = dict(zip(one._rows.tolist(), column(one._known, "gain").tolist(), strict=True))
    assert kept == {5: 1.0, 6: 2.0, 8: 1.0}
    one._forget()
    assert len(one._rows) == 3


def test_boards_that_are_known_keep_their_place_and_new_ones_begin_with_nothing():
    one = knowing("regret", rows=(7, 3), moves=[1, 2])
    place = one._places(np.array([3, 5, 7]))
    assert one._rows[place].tolist() == [3, 5, 7]
    assert column(one._known, "moves")[place].tolist() == [2, 0, 1]
    assert column(one._known, "best")[place].tolist() == [0, -np.inf, 0]
