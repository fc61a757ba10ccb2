"""``SB3Trainee`` keeps the promises of ``Trainee`` with on-policy and off-policy algorithms, discrete and continuous."""

from __future__ import annotations

import pickle
import random
import time

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="needs Stable-Baselines3: pip install 'mapf-frozenlake[sb3]'")

import torch

import mapf_frozenlake as mfl
from engineers.shared import own
from envtuning.errors import SpecError
from envtuning.loop import run as loop
from envtuning.outcomes import Counts, Outcome, total
from envtuning.runs.spec import RunSpec
from envtuning.testing import check_trainee
from envtuning.trainees import TraineeKind, make_trainee
from envtuning.trainees.base import TrainingDiverged
from envtuning.worlds import make_world
from envtuning.worlds.gym_training import TrainingEnv
from envtuning.worlds.world import World
from tests.envtuning.gym_worlds import CorridorConfig, CorridorWorld, FlatConfig, PoleWorld

CONFIG = CorridorConfig()
EASY = CorridorConfig.model_validate({"slices": {6: {"tightness": 0.0}}})
PPO = {"n_steps": 32, "batch_size": 64, "n_epochs": 2, "num_envs": 4, "report_every": 128}
DQN = {"algorithm": "DQN", "learning_starts": 50, "num_envs": 2, "buffer_size": 1_000, "target_update_interval": 100}
SAC = {"algorithm": "SAC", "learning_starts": 50, "num_envs": 1, "buffer_size": 1_000, "batch_size": 16, "train_freq": 8,
       "policy_kwargs": {"net_arch": [16]}}  # fmt: skip


class Pendulum(PoleWorld):
    def make(self, config, slice):
        return gym.make("Pendulum-v1", max_episode_steps=20)


KINDS = {"PPO": (CorridorWorld, CONFIG, PPO), "A2C": (CorridorWorld, CONFIG, {"algorithm": "A2C"}),
         "DQN": (CorridorWorld, CONFIG, DQN), "SAC": (Pendulum, FlatConfig(), SAC)}  # fmt: skip


def made(kind, seed=0, exclude=(), **more):
    world_type, config, options = KINDS[kind]
    world = world_type()
    trainee = make_trainee(
        "sb3", world=world, capacity=world.capacity([config]), exclude=exclude, seed=seed, **options | more
    )
    return trainee, config


def weights(trainee) -> list[bytes]:
    return [parameter.detach().numpy().tobytes() for parameter in trainee.model.policy.parameters()]


@pytest.mark.parametrize("kind", KINDS)
def test_training_depends_on_checkpoint_config_budget_and_seed_alone(kind, tmp_path):
    trainee, config = made(kind)
    trainee.train(config, 200, seed=1)
    trainee.save(tmp_path)

    def from_there(trainee, seed):
        trainee.load(tmp_path)
        first = trainee.train(config, 150, seed=seed)
        return first, trainee.train(config, 100, seed=seed + 1), weights(trainee)

    once = from_there(trainee, 7)
    other = made(kind, seed=99)[0]  # another process, with other weights and another history
    other.train(config, 60, seed=3)
    np.random.seed(5), torch.manual_seed(5), random.seed(5)  # noqa: NPY002
    assert from_there(other, 7) == once
    assert from_there(trainee, 7) == once
    assert from_there(trainee, 8)[2] != once[2]


@pytest.mark.parametrize("kind", KINDS)
def test_what_train_returns_is_the_sum_of_its_iterations(kind):
    trainee, config = made(kind)
    told: list[dict] = []
    returned = trainee.train(config, 300, seed=0, on_iteration=told.append)
    assert returned["env_steps"] == sum(one["env_steps"] for one in told) >= 300
    assert returned["episodes"] == sum(one["episodes"] for one in told) > 0
    assert 0 <= returned["success_rate"] <= 1
    assert np.isfinite(returned["loss"])


def test_an_algorithm_of_sb3_contrib_that_logs_other_losses_trains():
    pytest.importorskip("sb3_contrib")
    trainee, config = made("A2C", algorithm="sb3_contrib:TRPO", n_steps=16, batch_size=32)
    metrics = trainee.train(config, 100, seed=0)
    assert metrics["loss"] == metrics["value_loss"] > 0


def test_the_algorithms_of_sb3_contrib_that_do_not_fit_are_refused():
    pytest.importorskip("sb3_contrib")
    for name in ("RecurrentPPO", "MaskablePPO", "ARS"):
        with pytest.raises(SpecError, match=f"algorithm 'sb3_contrib:{name}'"):
            TraineeKind.named("sb3").check({"algorithm": f"sb3_contrib:{name}"}, CorridorWorld(), CONFIG)


def test_ppo_learns_to_walk_to_the_flag():
    trainee, _ = made("PPO", learning_rate=3e-3)
    world = CorridorWorld()
    cases = world.draw(CONFIG, 10, seed=0, purpose="validation", exclude=())

    def rate():
        played = world.play(trainee.policy(), cases, CONFIG, seed=0)
        return np.mean([episode.succeeded for episode in played])

    before = rate()
    trainee.train(EASY, 6_000, seed=0)
    assert before < 0.7 < 0.9 < rate()


def test_the_policy_is_a_copy():
    trainee, config = made("PPO")
    policy = trainee.policy()
    seen = np.random.default_rng(0).uniform(-1, 1, (64, 2)).astype(np.float32)
    before = policy.net.get_distribution(torch.as_tensor(seen)).distribution.logits.tolist()
    trainee.train(config, 500, seed=0)
    assert policy.net.get_distribution(torch.as_tensor(seen)).distribution.logits.tolist() == before


def test_a_sampled_policy_is_the_same_every_time_it_is_made():
    trainee, _ = made("PPO", deterministic=False)
    seen = np.zeros((64, 2), np.float32)
    one, other = trainee.policy(), trainee.policy()
    first = one.act(seen).tolist()
    assert len(set(first)) == 2
    assert first == other.act(seen).tolist()
    assert first != one.act(seen).tolist()


def test_the_process_generators_are_left_as_they_were():
    trainee, config = made("PPO")
    before = np.random.get_state()[1].tolist(), torch.get_rng_state().tolist(), random.getstate()  # noqa: NPY002
    trainee.train(config, 200, seed=0)
    trainee.policy().act(np.zeros((3, 2), np.float32))
    assert (np.random.get_state()[1].tolist(), torch.get_rng_state().tolist(), random.getstate()) == before  # noqa: NPY002


def test_no_training_episode_is_held_out(monkeypatch):
    world = CorridorWorld()
    suite = world.draw(EASY, 20, seed=0, purpose="validation", exclude=())
    dealt: set[str] = set()
    reset = TrainingEnv.reset

    def watched(env, **given):
        found = reset(env, **given)
        dealt.add(world.fingerprint(env.current, 0))
        return found

    monkeypatch.setattr(TrainingEnv, "reset", watched)
    trainee = make_trainee("sb3", world=world, capacity={"config": EASY}, exclude=(suite,), **PPO)
    trainee.train(EASY, 600, seed=0)
    assert len(dealt) == 10  # of 30, all that are not held out
    assert not dealt & suite.fingerprints()


def test_weights_that_are_not_finite_are_said_so():
    trainee, config = made("PPO")
    with torch.no_grad():
        next(trainee.model.policy.parameters()).fill_(float("nan"))
    with pytest.raises(TrainingDiverged, match="learning_rate"):
        trainee.train(config, 200, seed=0)


class WritesAFile:
    """As a pickle, code that runs where it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return self.path.touch, ()


def test_a_checkpoint_loads_without_running_code(tmp_path):
    trainee, _ = made("SAC")
    trainee.save(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"model.pt", "visited.npy"}
    assert set(torch.load(tmp_path / "model.pt", weights_only=True)) == {"parameters", "variables"}
    torch.save(WritesAFile(tmp_path / "ran"), tmp_path / "model.pt")
    with pytest.raises(pickle.UnpicklingError):
        trainee.load(tmp_path)
    assert not (tmp_path / "ran").exists()


def test_an_algorithm_that_cannot_be_imported_is_refused_before_the_run():
    own.trust(["no_such_package"])
    with pytest.raises(SpecError, match="cannot be imported"):
        TraineeKind.named("sb3").check({"algorithm": "no_such_package:X"}, CorridorWorld(), CONFIG)


class Bare(CorridorWorld):
    make_env = World.make_env


def test_a_world_without_environments_for_it_is_refused():
    for made in (
        lambda: TraineeKind.named("sb3").check({}, Bare(), CONFIG),
        lambda: make_trainee("sb3", world=Bare(), capacity={}),
    ):
        with pytest.raises(SpecError):
            made()


LAKE = mfl.LakeConfig.single(4, 2, hole_ratio=0.1, reward="shaped", collisions="end")
LAKES = make_world("lakes")


def test_on_lakes_it_keeps_its_promises():
    small = {"num_envs": 2, "n_steps": 16, "batch_size": 16}
    check_trainee("sb3", LAKES, LAKE, budget=64, **small)


LEARNS = {
    "n_steps": 128,
    "batch_size": 256,
    "n_epochs": 4,
    "learning_rate": 1e-3,
    "ent_coef": 0.01,
    "deterministic": False,
}


@pytest.mark.parametrize(
    ("agents", "stretches", "steps"), [(1, 1, 16_000), pytest.param(2, 5, 25_000, marks=pytest.mark.prove)]
)
def test_on_an_easy_lake_every_other_board_is_valid_within_a_minute(agents, stretches, steps):
    """Of processor time."""
    easy = mfl.LakeConfig.single(4, agents, hole_ratio=0.1, reward="progress", collisions="end")
    suite = LAKES.draw(easy, 100, seed=1, purpose="validation", exclude=())
    trainee = make_trainee("sb3", world=LAKES, capacity=LAKES.capacity([easy]), exclude=(suite,), **LEARNS)
    began = time.process_time()
    for seed in range(stretches):
        trainee.train(easy, steps, seed=seed)
    assert time.process_time() - began < 60
    episodes = LAKES.play(trainee.policy(), suite, easy, seed=3)
    assert np.mean([episode.metrics["valid_rate"] for episode in episodes]) >= 0.5


def test_a_whole_run(tmp_path):
    spec = RunSpec.model_validate(
        {
            "world": "tests.envtuning.gym_worlds:CorridorWorld",
            "target": {"slices": {6: {"tightness": 1.0}, 9: {"tightness": 1.0}}},
            "stages": [{"config": CONFIG.model_dump(), "budget": 2_000}, {"budget": 2_000}, {"budget": 2_000}],
            "trainee": {"kind": "sb3", "options": PPO},
            "engineer": {"name": "uniform"},
            "suites": {"validation_per_slice": 8, "test_per_slice": 8, "probe_per_slice": 4},
        }
    )
    run = loop.start(spec, tmp_path / "run")
    assert len(run.state.done) == 3
    assert not run.state.incidents()
    assert {row.name for row in run.state.test.last} == {"6", "9"}
    report = run.state.done[-1].report
    assert report.environment.startswith("A walker")
    assert report.failure_meanings["out_of_time"]
    assert report.environment_stats


@pytest.mark.parametrize("kind", ["PPO", "DQN"])
def test_its_outcomes_are_the_episodes_that_its_environments_ended(kind, monkeypatch):
    ended, told = [], []
    own_step = TrainingEnv.step

    def step(env, action):
        result = own_step(env, action)
        if result[2] or result[3]:
            ended.append((result[4]["slice"], result[4]["is_success"]))
        return result

    monkeypatch.setattr(TrainingEnv, "step", step)
    trainee, config = made(kind)
    trainee.train(config, 600, seed=0, on_iteration=told.append)
    tally = total(one["outcomes"] for one in told)
    counted = {name: Counts() for name in tally.first}
    for part in (tally.first, tally.repeats):
        for name, counts in part.items():
            counted[name].add(counts)
    assert {name: (counts.episodes, counts.successes) for name, counts in counted.items()} == {
        name: (sum(one == name for one, _ in ended), sum(won for one, won in ended if one == name))
        for name in {one for one, _ in ended}
    }
    assert tally.episodes == sum(one["episodes"] for one in told) > 10
    trainee.close()


def test_lakes_succeed_when_they_are_valid_and_have_the_agents_parts_as_scores():
    world = make_world("lakes")
    last = {"slice": "4", "success": True, "is_success": True, "valid": False, "score": 0.5}
    assert world.outcome(last) == Outcome("4", False, 0.5)
    assert world.outcome(last | {"valid": True, "score": 1.0}) == Outcome("4", True, 1.0)


def test_on_lakes_boards_that_come_again_are_repeats_and_failures_have_kinds():
    config = mfl.LakeConfig.single(3, 1, hole_ratio=0.0)  # it has 72 boards
    trainee = make_trainee("sb3", world=LAKES, capacity=LAKES.capacity([config]), seed=0, **PPO)
    told = []
    trainee.train(config, 2_000, seed=0, on_iteration=told.append)
    tally = total(one["outcomes"] for one in told)
    trainee.close()
    assert tally.first["3"].episodes == len(trainee.visited.known) <= 72
    assert tally.repeats["3"].episodes > 72
    for counts in (tally.first["3"], tally.repeats["3"]):
        assert counts.failures.total() == counts.episodes - counts.successes
        assert counts.failures.keys() <= {"illegal_move", "goal_missed"}
    assert tally.repeats["3"].failures["illegal_move"] > 0


def test_cases_of_a_checkpoint_are_repeats(tmp_path):
    trainee, _ = made("PPO")
    assert trainee.visited.repeats(["a", "a", "b"]) == [False, False, False]
    trainee.save(tmp_path)
    other, _ = made("PPO")
    other.load(tmp_path)
    assert other.visited.repeats(["b", "c"]) == [True, False]
    np.save(tmp_path / "visited.npy", np.array(["x"]))
    with pytest.raises(ValueError, match=r"visited\.npy must hold whole numbers"):
        other.load(tmp_path)
