"""The closed-form learner: what raises its skill, by how much, and when it solves a board."""

from __future__ import annotations

import numpy as np
import pytest

from envtuning.outcomes import total
from envtuning.trainees.scripted import ITERATION, ScriptedTrainee, difficulty, heedless_plan, luck, solve_chance
from mapf_frozenlake import LakeConfig, generate, judge

ROOM = {"max_size": 8}


def at_the_frontier(size, **options):
    """A learner that solves half of what the config deals of this size, and that config."""
    config = LakeConfig.single(size, num_agents=2, hole_ratio=0.1, wait_ratio=0.5)
    trainee = ScriptedTrainee(capacity=ROOM, **options)
    trainee.skill[:] = difficulty(size, 0.1, 0.5, 2)
    return trainee, config


@pytest.mark.parametrize(("speed", "spill"), [(0.4, 0.5), (1.0, 0.25)])
def test_at_the_frontier_a_thousand_steps_raise_the_skill_by_speed_and_its_neighbours_by_the_spill(speed, spill):
    trainee, config = at_the_frontier(5, speed=speed, spill=spill)
    before = trainee.skill.copy()
    trainee.train(config, 1, seed=0)
    gained = 1000 * (trainee.skill - before)
    assert gained == pytest.approx([speed * spill ** abs(size - 5) for size in range(9)])


def test_what_is_mastered_or_out_of_reach_teaches_nothing():
    for far in (-30, 30):
        trainee, config = at_the_frontier(5)
        trainee.skill += far
        before = trainee.skill.copy()
        trainee.train(config, 1000, seed=0)
        assert trainee.skill == pytest.approx(before, abs=1e-9)


def test_slices_pull_with_their_share_of_the_data():
    config = LakeConfig.model_validate({"num_agents": 2, "slices": {4: {"share": 0.75}, 6: {"share": 0.25}}})
    trainee = ScriptedTrainee(capacity=ROOM, spill=0.0)
    trainee.skill[[4, 6]] = [difficulty(size, config.slices[size].hole_ratio, 0.1, 2) for size in (4, 6)]
    before = trainee.skill.copy()
    found = trainee.train(config, 1, seed=0)
    gained = trainee.skill - before
    assert gained[4] == pytest.approx(3 * gained[6])
    assert gained[[4, 6]].sum() == pytest.approx(gained.sum())
    assert found["success_rate"] == pytest.approx(0.5)


def test_the_whole_budget_is_spent_and_each_iteration_is_told():
    trainee, config = at_the_frontier(5)
    told = []
    found = trainee.train(config, 2 * ITERATION + 1, seed=0, on_iteration=told.append)
    assert [one["env_steps"] for one in told] == [ITERATION, ITERATION, 1]
    assert found == {name: told[-1][name] for name in ("success_rate", "grad_norm")} | {"env_steps": 2 * ITERATION + 1}
    assert told[0]["success_rate"] == pytest.approx(0.5)
    assert told[0]["success_rate"] < told[1]["success_rate"] < told[2]["success_rate"]


def test_boards_are_harder_with_size_holes_waiting_and_agents():
    easy = difficulty(3, 0.0, 0.0, 1)
    assert easy == 0.0
    assert all(difficulty(*more) > easy for more in [(4, 0.0, 0.0, 1), (3, 0.1, 0.0, 1), (3, 0, 0.1, 1), (3, 0, 0, 2)])
    assert solve_chance(1.0, 1.0) == 0.5
    assert solve_chance(2.0, 1.0) + solve_chance(1.0, 2.0) == pytest.approx(1.0)
    assert solve_chance(2.0, 1.0) > 0.5


def test_a_budget_of_nothing_teaches_nothing_and_says_so():
    trainee = ScriptedTrainee(capacity=ROOM)
    assert (trainee.speed, trainee.spill) == (0.4, 0.5)
    assert trainee.train(at_the_frontier(5)[1], 0, seed=0) == {"success_rate": 0.0, "grad_norm": 0.0, "env_steps": 0.0}
    assert trainee.skill.tolist() == [0.0] * 9


@pytest.mark.parametrize(("noise", "norm"), [(0.0, 1.0), (1.0, 1.2), (2.0, 1.4), (5.0, 1.4), (-1.0, 0.8), (-5.0, 0.6)])
def test_the_gradient_norm_is_what_can_be_learnt_with_bounded_noise(noise, norm):
    trainee, config = at_the_frontier(5)
    found = trainee._learn(config, 1, noise)
    assert found == {"success_rate": pytest.approx(0.5), "grad_norm": pytest.approx(norm)}
    trainee, config = at_the_frontier(5)
    trainee.skill += np.log(3)  # solves three of four
    assert trainee._learn(config, 1, noise)["grad_norm"] == pytest.approx(norm * 0.75)


def test_how_hard_a_board_is():
    rows = [(4, 0, 0, 1), (3, 0.5, 0, 1), (3, 0, 0.5, 1), (3, 0, 0, 3), (6, 0.25, 1, 2), (2, 0, 0, 1)]
    assert [difficulty(*row) for row in rows] == pytest.approx([0.4, 2.0, 0.5, 1.0, 1.2 + 1.0 + 1.0 + 0.5, -0.4])
    assert solve_chance(0.0, np.log(3)) == pytest.approx(0.25)


def test_its_skill_comes_back_from_its_folder(tmp_path):
    trainee, config = at_the_frontier(5)
    trainee.train(config, 1000, seed=0)
    trainee.save(tmp_path)
    again = ScriptedTrainee(capacity=ROOM)
    again.load(tmp_path)
    assert again.skill.tolist() == trainee.skill.tolist()


def test_it_solves_what_its_skill_is_enough_for_and_heedless_plans_never_reach():
    boards = list(generate(LakeConfig.single(5, num_agents=2, hole_ratio=0.2), n=30, seed=0))
    able, unable = ScriptedTrainee(capacity=ROOM), ScriptedTrainee(capacity=ROOM)
    able.skill[:], unable.skill[:] = 40.0, -40.0
    assert all(judge(board, able.policy()(board)).optimal for board in boards)
    assert not any(judge(board, unable.policy()(board)).valid for board in boards)
    assert all(unable.policy()(board) == heedless_plan(board) for board in boards)
    draws = np.array([luck(board) for board in boards])
    assert len(set(draws)) == len(draws)
    assert 0.3 < draws.mean() < 0.7
    assert ((draws >= 0) & (draws < 1)).all()


def test_its_outcomes_follow_the_shares_and_succeed_by_its_chance():
    config = LakeConfig.model_validate({"num_agents": 2, "slices": {4: {"share": 0.75}, 6: {"share": 0.25}}})
    trainee, told = ScriptedTrainee(capacity=ROOM, speed=0.0), []
    trainee.skill[[4, 6]] = [40.0, difficulty(6, config.slices[6].hole_ratio, 0.1, 2)]
    trainee.train(config, 40 * ITERATION, seed=0, on_iteration=told.append)
    counts = total(one["outcomes"] for one in told).first
    assert counts["4"].episodes == pytest.approx(3 * counts["6"].episodes, rel=0.1)
    assert counts["4"].successes == counts["4"].episodes
    assert counts["6"].successes / counts["6"].episodes == pytest.approx(0.5, abs=0.1)


def test_each_training_episode_is_a_first_visit_and_each_failed_one_misses_its_goal():
    trainee, config = at_the_frontier(5)
    told = []
    trainee.train(config, 4 * ITERATION, seed=0, on_iteration=told.append)
    tally = total(one["outcomes"] for one in told)
    counts = tally.first["5"]
    assert 0 < counts.successes < counts.episodes
    assert dict(counts.failures) == {"goal_missed": counts.episodes - counts.successes}
    assert not tally.repeats
