"""What sampling counts and hands on: on a batch of lakes written out by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'mapf-frozenlake[rllib]'")

from envtuning.trainees.lakes.policy import SharedPolicy  # noqa: E402
from envtuning.trainees.lakes.rollout import draw_actions  # noqa: E402
from envtuning.trainees.lakes.sampler import LakeSampler, as_metrics  # noqa: E402
from envtuning.trainees.lakes.trainee import summary  # noqa: E402

LEFT, WAIT = 0, 4


class Network:
    """Its observations are numbers: an agent that sees n is worth n and goes LEFT, whatever chance says."""

    def policy_and_value(self, rows):
        logits = torch.full((len(rows), 5), -1e9)
        logits[:, LEFT] = 0.0
        return logits, rows[:, 0].clone()

    def eval(self):
        return self


class Lakes:
    """Two lakes with two slots each, the second lake with one agent; its episodes end as the script says."""

    num_envs, max_agents, layout = 2, 2, SimpleNamespace(size=1)
    active = np.array([[True, True], [True, False]])
    terminated = ((0, 0), (1, 0), (0, 0))
    truncated = ((0, 1), (0, 0), (0, 1))
    success = np.array([1, 0])
    valid = np.array([0, 1])
    score = np.array([0.5, 1.0])
    slices = np.array(["4", "6"], object)
    failures = np.array(["hole", None], object)
    board_hashes = np.array([2**64 - 1, 7], np.uint64)

    def __init__(self):
        self.seeds, self.moved, self.at = None, [], 0

    def seed(self, seeds):
        self.seeds = seeds

    def reset(self):
        self.step_count = np.zeros(2, np.int64)
        return self.seen()

    def seen(self):
        return (np.where(self.active, 10.0 * self.at + np.array([[1, 2], [3, 0]]), 0.0)[..., None]).astype(np.float32)

    def step(self, actions):
        self.moved.append(actions.copy())
        row = self.at % 3
        self.at += 1
        self.step_count = np.array([self.at, 10 * self.at])
        return SimpleNamespace(
            observation=self.seen(),
            rewards=np.where(self.active, 0.5, 0.0).astype(np.float32),
            terminated=np.array(self.terminated[row], bool),
            truncated=np.array(self.truncated[row], bool),
        )


def test_a_rollout_goes_on_where_the_last_one_ended_and_counts_its_episodes():
    env = Lakes()
    sampler = LakeSampler(env, 3, 4)
    assert env.seeds.tolist() == np.random.SeedSequence(4).generate_state(2, np.uint32).tolist()
    rollout, counts = sampler.sample(Network())
    # Lake 0 terminates at step 1 and counts as solved, lake 1 is cut at steps 0 and 2 and counts as valid.
    steps = 2 + 10 + 30
    assert dict(counts) == {
        "episodes": 3, "successes": 1, "valid": 2, "episode_steps": steps, "env_steps": 4,
        "reward": 3 * 1.5 / 1.5,
    }  # fmt: skip
    assert [column.tolist() for column in sampler.ended] == [
        ["6", "4", "6"], [True, False, True], [1.0, 0.5, 1.0], [None, "hole", None], [7, 2**64 - 1, 7],
    ]  # fmt: skip
    assert rollout.moved.tolist() == [[True, True], [True, False], [False, True]]
    assert rollout.rows[:, 0, 0, 0].tolist() == [1, 11, 21, 31]
    assert rollout.values.tolist() == [[[1 + at, 2 + at], [3 + at, 0]] for at in (0, 10, 20, 30)]
    assert rollout.actions.tolist() == [[[LEFT, LEFT], [LEFT, WAIT]]] * 3
    assert [moves.tolist() for moves in env.moved] == rollout.actions.tolist()
    assert rollout.active.tolist() == [env.active.tolist()] * 3
    assert rollout.ended.tolist() == [[False, True], [True, False], [False, True]]
    assert rollout.terminated.tolist() == [[False, False], [True, False], [False, False]]
    assert (rollout.log_probs == 0).all()
    again, counts = sampler.sample(Network())
    assert again.rows[:, 0, 0, 0].tolist() == [31, 41, 51, 61]
    assert again.moved.tolist() == [[True, False], [True, False], [False, True]]
    assert counts["env_steps"] == 3


def test_what_came_of_rollouts_is_told_per_episode_and_per_env_step():
    counts = {"episodes": 4, "successes": 1, "valid": 2, "episode_steps": 30, "env_steps": 40, "reward": 10.0}
    assert as_metrics(counts) == {
        "env_steps": 40.0, "episodes": 4.0, "success_rate": 0.25, "valid_rate": 0.5, "episode_length": 7.5, "reward": 0.25,
    }  # fmt: skip
    nothing = dict.fromkeys(counts, 0) | {"env_steps": 40}
    assert as_metrics(nothing)["success_rate"] == 0.0
    assert as_metrics(counts | {"episodes": 1})["success_rate"] == 1.0
    assert set(as_metrics(dict.fromkeys(counts, 0)).values()) == {
        0.0
    }  # a rollout of one step, in which one lake begins


def test_a_draw_just_at_a_bound_goes_to_the_next_action():
    row = np.array([[-1e9, 0.0, 0.0, -1e9, -1e9]], np.float32)
    action, _ = draw_actions(row, np.array([0.5], np.float32))
    assert action[0] == 2


def test_the_policy_draws_at_its_temperature_and_empty_slots_wait():
    class Odds(Network):
        def policy_and_value(self, rows):
            logits = torch.zeros((len(rows), 5))
            logits[:, 1] = rows[:, 0]
            return logits, rows[:, 0]

    seen = np.full((400, 2, 1), 2.0, np.float32)
    seen[:, 1] = 0.0
    seen[7, 1] = 1.0

    def acts(**given):
        return SharedPolicy(Odds(), {"window": 5}, **given).act(seen)

    greedy = acts()
    assert (greedy[:, 0] == 1).all()
    assert greedy[7, 1] == 1
    assert (np.delete(greedy[:, 1], 7) == WAIT).all()
    for temperature in (0.5, 1.0, 2.0):
        drawn = acts(temperature=temperature)
        chance = np.exp(2 / temperature) / (np.exp(2 / temperature) + 4)
        assert (drawn[:, 0] == 1).mean() == pytest.approx(chance, abs=0.06)
        assert (drawn == acts(temperature=temperature, seed=0)).all()
        assert (drawn != acts(temperature=temperature, seed=1)).any()


def test_a_call_of_training_reports_sums_rates_of_its_last_ten_iterations_by_episodes_and_a_smoothed_gradient():
    history = [
        {"env_steps": 10.0, "episodes": 1.0, "success_rate": 0.0, "valid_rate": 1.0, "grad_norm": 9.0, "loss": 5.0}
        for _ in range(2)
    ]
    history += [
        {"env_steps": 10.0, "episodes": float(number == 9) * 3 + 1, "success_rate": float(number == 9),
         "valid_rate": 0.5, "grad_norm": float(number), "loss": float(number)}
        for number in range(10)
    ]  # fmt: skip
    assert summary(history) == {
        "env_steps": 120.0, "episodes": 15.0, "success_rate": 4 / 13, "valid_rate": 0.5, "grad_norm": 4.5, "loss": 9.0,
    }  # fmt: skip
    none = [one | {"episodes": 0.0} for one in history]
    none[3]["workers_lost"] = 2.0
    assert summary(none) | {"success_rate": 0.0, "workers_lost": 2.0} == summary(none)
