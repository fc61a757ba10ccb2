"""``PPOTrainee`` keeps the promises of ``Trainee``, and its update is PPO's."""

# ruff: noqa: E402
from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'mapf-frozenlake[rllib]'")

import mapf_frozenlake as mfl
from envtuning.errors import SpecError
from envtuning.outcomes import Counts, Tally, total
from envtuning.trainees import TraineeKind, make_trainee
from envtuning.trainees.base import Trainee, TrainingDiverged
from envtuning.trainees.lakes.network import AgentNetwork
from envtuning.trainees.lakes.options import LakeOptions
from envtuning.trainees.ppo import PPOLearner
from envtuning.worlds.registry import make_world
from envtuning.worlds.world import InfeasibleConfig
from mapf_frozenlake import GenerationError
from mapf_frozenlake.world.layout import EgoLayout

EASY = mfl.LakeConfig.single(3, num_agents=1, reward="shaped")
HARD = mfl.LakeConfig.single(5, num_agents=2, reward="progress", collisions="end")
SMALL = {"num_envs": 16, "rollout": 16, "minibatch": 128, "hidden": (32,)}


def make(**options):
    return make_trainee("ppo", capacity={"max_size": 5, "max_agents": 2}, **{"seed": 0} | SMALL | options)


def every_visit(tally):
    """The counts of slice 3, repeats too."""
    return total([Tally(first=tally.first), Tally(first=tally.repeats)]).first.get("3", Counts())


def weights(trainee):
    return torch.cat([weight.detach().flatten() for weight in trainee.network.parameters()])


def test_is_a_trainee():
    trainee, seen = make(), []
    assert isinstance(trainee, Trainee)
    metrics = trainee.train(EASY, 500, seed=0, on_iteration=seen.append)
    assert metrics["env_steps"] == sum(done["env_steps"] for done in seen) >= 500
    assert metrics["episodes"] == sum(done["episodes"] for done in seen) > 0
    assert all({"env_steps", "success_rate", "valid_rate", "grad_norm", "entropy"} <= done.keys() for done in seen)
    counted = [every_visit(done["outcomes"]) for done in seen]
    assert [one.episodes for one in counted] == [done["episodes"] for done in seen]
    assert all(one.failures.total() == one.episodes - one.successes for one in counted)
    assert {kind for one in counted for kind in one.failures} <= {"hole", "illegal_move", "conflict", "goal_missed"}
    assert any(one.failures for one in counted)
    rates = [one.successes / one.episodes for one in counted if one.episodes]
    assert rates == pytest.approx([done["valid_rate"] for done in seen if done["episodes"]])
    policy = trainee.policy()
    lakes = mfl.LakeBatch(HARD, 8, **policy.env_kwargs)
    actions = policy.act(lakes.reset())
    assert lakes.action_masks()[np.arange(8)[:, None], np.arange(2), actions].all()


def test_what_it_becomes_depends_on_the_folder_the_config_the_budget_and_the_seed_alone(tmp_path):
    first = make()
    first.train(EASY, 500, seed=0)
    first.save(tmp_path)
    history, again = [], []
    first.train(HARD, 1000, seed=1, on_iteration=history.append)
    other = make(seed=5)
    other.train(HARD, 300, seed=9)  # another past
    other.load(tmp_path)
    other.train(HARD, 1000, seed=1, on_iteration=again.append)
    assert history == again
    assert torch.equal(weights(first), weights(other))
    other.load(tmp_path)
    other.train(HARD, 1000, seed=2)
    assert not torch.equal(weights(first), weights(other))


def test_each_board_of_a_small_pool_is_a_first_visit_once_in_a_run(tmp_path):
    trainee, told = make(pool_size=5), []
    for seed in (0, 1):
        trainee.train(EASY, 500, seed=seed, on_iteration=told.append)
        (tmp_path / str(seed)).mkdir()
        trainee.save(tmp_path / str(seed))
    summed = total(done["outcomes"] for done in told)
    assert summed.first["3"].episodes == len({instance.key() for instance in mfl.generate(EASY, n=5, seed=0)})
    assert summed.episodes == sum(done["episodes"] for done in told) > 50
    other, again = make(pool_size=5), []
    other.load(tmp_path / "0")
    other.train(EASY, 500, seed=1, on_iteration=again.append)
    assert [done["outcomes"] for done in again] == [done["outcomes"] for done in told[-len(again) :]]


def test_a_checkpoint_is_gone_on_from_with_the_options_learning_rate(tmp_path):
    """Which is what is advised after a stage diverged."""
    make(lr=1e-2).save(tmp_path)
    still = make(lr=1e-12)
    still.load(tmp_path)
    before = weights(still)
    still.train(EASY, 500, seed=0)
    assert torch.allclose(weights(still), before, atol=1e-6)


def test_boards_that_run_out_later_make_a_config_infeasible_too(monkeypatch):
    trainee = make()

    def none_left(*_):
        raise GenerationError("none is left")

    monkeypatch.setattr(trainee, "_once", none_left)
    with pytest.raises(InfeasibleConfig, match="none is left"):
        trainee.train(EASY, 500, seed=0)


def test_the_process_s_random_state_is_left_alone():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    make().train(EASY, 300, seed=1)
    assert torch.equal(before, torch.get_rng_state())


def test_it_learns():
    trainee = make(num_envs=64, rollout=32, hidden=(64,))
    untrained = trainee.train(EASY, 1, seed=0)["success_rate"]
    assert trainee.train(EASY, 40_000, seed=1)["success_rate"] > max(0.9, untrained + 0.2)


def test_numbers_that_are_not_finite_are_a_divergence_and_their_steps_are_charged():
    trainee, seen = make(lr=1e30), []
    with pytest.raises(TrainingDiverged, match="lower learning rate"):
        trainee.train(HARD, 5000, seed=0, on_iteration=seen.append)
    assert seen


def test_a_wrong_option_is_found_before_there_is_a_run():
    with pytest.raises(SpecError, match="leraning"):
        TraineeKind.named("ppo").check({"leraning": 1}, make_world("lakes"), EASY)
    with pytest.raises(SpecError, match="minibatch"):
        TraineeKind.named("ppo").check({"minibatch": 0}, make_world("lakes"), EASY)


def test_options_cannot_be_changed_under_a_trainee():
    with pytest.raises(ValueError, match="frozen"):
        LakeOptions().lr = 1.0


def test_the_update_is_the_gradient_of_the_clipped_surrogate():
    """One step of plain gradient descent against finite differences of the loss as written down in the paper."""
    options = LakeOptions(hidden=(8,), epochs=1, minibatch=10_000, grad_clip=1e9, entropy=0.02)
    torch.manual_seed(0)
    network = AgentNetwork(EgoLayout(5, False), **options.network).double()
    rng, n = np.random.default_rng(0), 64
    rows = rng.normal(size=(n, EgoLayout(5, False).size))
    rows[:, network._mask_at : network._mask_at + 5] = rng.random((n, 5)) < 0.7
    rows[:, network._mask_at + 4] = 1  # waiting is always legal
    experience = {
        "obs": rows,
        "actions": np.full(n, 4),
        "action_logp": rng.normal(-1.5, 0.5, n),
        "action_dist_inputs": np.zeros((n, 5)),
        "advantages": rng.normal(size=n),
        "value_targets": rng.normal(size=n),
    }

    def loss():
        with torch.no_grad():
            logits, values = (out.numpy() for out in network.policy_and_value(torch.from_numpy(rows)))
        legal = rows[:, network._mask_at : network._mask_at + 5] > 0
        chances = np.where(legal, np.exp(logits), 0)
        chances /= chances.sum(axis=1, keepdims=True)
        ratio = chances[:, 4] / np.exp(experience["action_logp"])
        advantages = experience["advantages"]
        advantages = (advantages - advantages.mean()) / advantages.std()
        surrogate = np.minimum(ratio * advantages, np.clip(ratio, 0.8, 1.2) * advantages).mean()
        entropy = -np.where(legal, chances * np.log(np.where(legal, chances, 1)), 0).sum(axis=1).mean()
        return -surrogate + 0.5 * ((values - experience["value_targets"]) ** 2).mean() - 0.02 * entropy

    learner = PPOLearner(network, options)
    learner.optimiser = torch.optim.SGD(network.parameters(), lr=0.0)
    seen = learner.learn(experience, torch.Generator().manual_seed(0))
    assert seen["loss"] == pytest.approx(loss())
    norm = 0.0
    for weight in network.parameters():
        for index in range(min(weight.numel(), 5)):
            flat, step = weight.data.view(-1), 1e-6
            old = flat[index].item()
            flat[index] = old + step
            above = loss()
            flat[index] = old - step
            below = loss()
            flat[index] = old
            assert weight.grad.view(-1)[index].item() == pytest.approx((above - below) / (2 * step), abs=1e-6)
        norm += float((weight.grad**2).sum())
    assert seen["grad_norm"] == pytest.approx(norm**0.5)


def test_the_papers_row_trains_on_the_suite_s_kinds_of_boards_with_as_many_agents_as_it_is_told():
    from benchmarks.papers_row import SMALL_EVERY, config_of

    for chunk in range(SMALL_EVERY):
        usual, two = config_of(chunk), config_of(chunk, "two")
        assert two.model_copy(update={"num_agents": usual.num_agents}) == usual
        assert set(usual.num_agents) <= {3, 4, 5}
        assert two.num_agents == {2: 1.0}
        assert all(len(board.starts) == 2 for board in mfl.generate(two, n=8, seed=chunk))


def test_the_papers_row_has_every_column(monkeypatch):
    from benchmarks import papers_row

    monkeypatch.setattr(papers_row, "SUITE", "quick")
    monkeypatch.setattr(papers_row, "TRIES", 2)
    trainee = papers_row.PPOTrainee(capacity={"max_size": 10, "max_agents": 5}, exclude=[], seed=0)
    found = papers_row.rows(trainee)
    assert found["sampled"]["overall"]["valid"] <= found["best of 2, valid"] <= 100
    assert found["best of 2, optimal"] <= found["best of 2, valid"]
    assert [row["group"]["agents"] for row in found["greedy"]["by agents"]] == [3, 4, 5]
