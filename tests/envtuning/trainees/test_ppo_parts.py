"""PPO's parts by themselves: what an update's passes are, and what a trainee gives to its lakes."""

# ruff: noqa: E402
from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'mapf-frozenlake[rllib]'")

import mapf_frozenlake as mfl
from envtuning.trainees import make_trainee
from envtuning.trainees import ppo as trainees
from envtuning.trainees.lakes.network import AgentNetwork
from envtuning.trainees.lakes.options import LakeOptions
from envtuning.trainees.ppo import PPOLearner
from mapf_frozenlake.world.layout import EgoLayout

LAYOUT = EgoLayout(5, False)
EASY = mfl.LakeConfig.single(3, num_agents=1, reward="shaped")


def rows_of(legal):
    rows = torch.rand(len(legal), LAYOUT.size)
    mask = LAYOUT.features.index("mask_0") + LAYOUT.window_size
    rows[:, mask : mask + 5] = torch.tensor(legal, dtype=torch.float32)
    return rows


def experience_of(advantages):
    n = len(advantages)
    return {
        "obs": rows_of([[1] * 5] * n).numpy(),
        "actions": np.arange(n) % 5,
        "action_logp": np.full(n, -1.6, np.float32),
        "action_dist_inputs": np.zeros((n, 5), np.float32),
        "advantages": np.array(advantages, np.float32),
        "value_targets": np.arange(n, dtype=np.float32),
    }


def learner(**options):
    torch.manual_seed(0)
    told = LakeOptions(**{"hidden": (8,), "minibatch": 4} | options)
    return PPOLearner(AgentNetwork(LAYOUT, **told.network), told)


def test_an_update_passes_over_everything_in_minibatches_and_tells_the_last_pass(monkeypatch):
    one, batches = learner(epochs=3), []
    monkeypatch.setattr(one, "_step", lambda batch: batches.append(batch) or {"loss": float(len(batches))})
    advantages = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert one.learn(experience_of(advantages), torch.Generator().manual_seed(0)) == {"loss": 5.5}  # of 5 and 6
    assert [len(batch["obs"]) for batch in batches] == [4, 2] * 3
    assert "action_dist_inputs" not in batches[0]
    orders = []
    for first, second in zip(batches[::2], batches[1::2], strict=True):
        targets = torch.cat([first["value_targets"], second["value_targets"]])
        orders.append(targets.tolist())
        assert sorted(orders[-1]) == [0, 1, 2, 3, 4, 5]
        scaled = torch.cat([first["advantages"], second["advantages"]])
        torch.testing.assert_close(scaled, (targets - 2.5) / np.std(advantages))  # mean 0, deviation 1
    assert orders[0] != orders[1]
    batches.clear()
    torch.manual_seed(99)  # the process's own is no part of it
    one.learn(experience_of(advantages), torch.Generator().manual_seed(0))
    assert torch.cat([batches[0]["value_targets"], batches[1]["value_targets"]]).tolist() == orders[0]


def test_advantages_that_hardly_differ_are_not_blown_up(monkeypatch):
    one, batches = learner(epochs=1), []
    monkeypatch.setattr(one, "_step", lambda batch: batches.append(batch) or {"loss": 0.0})
    one.learn(experience_of([0.0, 2e-5]), torch.Generator().manual_seed(0))
    assert sorted(batches[0]["advantages"].tolist()) == pytest.approx([-0.1, 0.1])


def test_a_step_forgets_the_last_steps_gradient_and_moves_by_the_learning_rate():
    one = learner(epochs=1, minibatch=64, lr=0.0125)
    before = [weight.detach().clone() for weight in one.network.parameters()]
    same = experience_of([1.0, -1.0, 0.5, -0.5])
    first = one.learn(same, torch.Generator().manual_seed(0))
    moved = max(float((weight - old).abs().max()) for weight, old in zip(one.network.parameters(), before, strict=True))
    assert moved == pytest.approx(0.0125, rel=1e-3)  # Adam's first step
    frozen = learner(epochs=1, minibatch=64)
    frozen.optimiser = torch.optim.SGD(frozen.network.parameters(), lr=0.0)
    norms = [frozen.learn(same, torch.Generator().manual_seed(0))["grad_norm"] for _ in range(2)]
    assert norms[0] == norms[1] == pytest.approx(first["grad_norm"])


def test_a_trainees_lakes_are_made_once_with_what_it_was_given(monkeypatch):
    made = []

    class Lakes:
        def __init__(self, config, num_envs, **given):
            made.append(given | {"config": config, "num_envs": num_envs})
            self.configs = []

        def set_config(self, config):
            self.configs.append(config)

    monkeypatch.setattr(trainees, "LakeBatch", Lakes)
    held_out = mfl.generate(EASY, n=1, seed=0)
    one = make_trainee("ppo", capacity={"max_size": 4, "max_agents": 1}, exclude=(held_out,), num_envs=3, hidden=(4,))
    lakes = one._lakes(EASY)
    assert one._lakes("another") is lakes
    assert lakes.configs == [EASY, "another"]
    (given,) = made
    assert (given["num_envs"], given["config"], given["exclude"]) == (3, EASY, [held_out])
    assert (given["max_size"], given["max_agents"]) == (4, 1)
