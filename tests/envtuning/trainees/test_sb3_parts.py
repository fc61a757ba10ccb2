"""The parts of the Stable-Baselines3 trainee that need no training: options, networks, losses, what is counted."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from gymnasium import spaces

pytest.importorskip("stable_baselines3", reason="needs stable-baselines3: pip install 'mapf-frozenlake[sb3]'")

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

from envtuning.outcomes import Tally
from envtuning.trainees.base import OUTCOMES
from envtuning.trainees.sb3 import (
    SB3Policy,
    SB3Trainee,
    Watch,
    algorithm_class,
    losses,
    policy_for,
    raise_unless_finite,
    start_anew,
)
from envtuning.trainees.visited import Visited
from tests.envtuning.gym_worlds import CorridorConfig, CorridorWorld


def image(*shape):
    return spaces.Box(0, 255, shape, np.uint8)


@pytest.mark.parametrize(
    ("space", "policy"),
    [
        (spaces.Dict({"a": spaces.Discrete(2)}), "MultiInputPolicy"),
        (image(36, 36, 3), "CnnPolicy"),
        (image(3, 36, 40), "CnnPolicy"),
        (image(35, 36, 3), "MlpPolicy"),
        (image(84, 35, 3), "MlpPolicy"),
        (spaces.Box(0, 1, (36, 36, 3), np.float32), "MlpPolicy"),
        (spaces.Discrete(5), "MlpPolicy"),
    ],
)
def test_an_image_that_is_large_enough_is_read_by_convolutions(space, policy):
    assert policy_for(space) == policy


@pytest.mark.parametrize(
    ("logged", "found"),
    [
        ({"train/loss": 1, "train/lr": np.float32(0.5), "train/name": "x", "time/fps": 3}, {"loss": 1.0, "lr": 0.5}),
        ({"train/critic_loss": 2.0, "train/actor_loss": 1.0}, {"critic_loss": 2.0, "actor_loss": 1.0, "loss": 2.0}),
        ({"train/loss": 1.0, "train/critic_loss": 2.0}, {"loss": 1.0, "critic_loss": 2.0}),
        (
            {"train/policy_loss": 1.0, "train/entropy_loss": 10.0, "train/value_loss": 100.0},
            {"policy_loss": 1.0, "entropy_loss": 10.0, "value_loss": 100.0, "loss": 1.0 + 5.0 + 25.0},
        ),
        ({"train/loss": 1.0, "train/value_loss": 2.0}, {"loss": 1.0, "value_loss": 2.0}),
        (
            {"train/policy_objective": 1.0, "train/value_loss": 2.0},
            {"policy_objective": 1.0, "value_loss": 2.0, "loss": 2.0},
        ),
        ({}, {}),
    ],
)
def test_the_loss_is_the_one_that_was_logged_or_the_critic_s_or_the_sum_of_its_parts(logged, found):
    assert losses(logged, SimpleNamespace(ent_coef=0.5, vf_coef=0.25)) == found


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"learning_rat": 1},
            r"PPO has no hyperparameter learning_rat \(did you mean learning_rate\?\): it has .*batch_size",
        ),
        ({"algorithm": "DQN", "zzz": 1}, "DQN has no hyperparameter zzz: it has "),
        ({"env": 1}, "no hyperparameter env"),
        (
            {"algorithm": "TD3", "target_polic_noise": 1},
            r"target_polic_noise \(did you mean target_policy_noise\?\): it has ",
        ),
        ({"num_envs": 0}, "num_envs=0: give at least 1"),
        ({"report_every": 0}, "report_every=0: give at least 1"),
        ({"torch_threads": 0}, "torch_threads=0: give at least 1"),
        ({"algorithm": "PPPO"}, "algorithm 'PPPO': .*Stable-Baselines3 has A2C"),
        ({"algorithm": "collections:Counter"}, "'collections:Counter'.*Stable-Baselines3"),
        ({"algorithm": "envtuning.trainees.sb3:losses"}, "sb3:losses'.*Stable-Baselines3"),
    ],
)
def test_options_are_refused_by_name(options, said):
    with pytest.raises(ValueError, match=said):
        SB3Trainee.check_options(**options)


def test_options_of_the_trainee_and_of_the_algorithm_are_taken():
    SB3Trainee.check_options(
        num_envs=1, report_every=1, torch_threads=1, policy="MlpPolicy", learning_rate=0.5, device="cpu"
    )
    assert algorithm_class("stable_baselines3:DQN").__name__ == "DQN"


class Population(BaseAlgorithm):
    """An algorithm of another kind, as sb3-contrib's ARS."""

    _setup_model = learn = None


class RecurrentPPO(OnPolicyAlgorithm):
    """By its name what sb3-contrib has."""


class MaskablePPO(OnPolicyAlgorithm):
    """By its name what sb3-contrib has."""


class OwnRecurrent(RecurrentPPO):
    pass


@pytest.mark.parametrize(
    ("algorithm", "said"),
    [
        ("Population", "neither on-policy nor off-policy, so its steps cannot be counted"),
        ("RecurrentPPO", "its memory would be empty at every step"),
        ("OwnRecurrent", "its memory would be empty at every step"),
        ("MaskablePPO", "MaskablePPO'.*action masks"),
    ],
)
def test_an_algorithm_that_would_fail_or_be_judged_as_another_is_refused_before_anything_is_made(algorithm, said):
    named = f"tests.envtuning.trainees.test_sb3_parts:{algorithm}"
    with pytest.raises(ValueError, match=said):
        SB3Trainee.check_options(algorithm=named)
    with pytest.raises(ValueError, match=said):
        SB3Trainee(world=CorridorWorld(), capacity={"config": CorridorConfig()}, algorithm=named)


class Noted(OnPolicyAlgorithm):
    """Takes what an algorithm is given, and makes nothing."""

    def __init__(self, policy, env, *, seed, device, **hyperparameters):
        self.given = (policy, env, seed, device, hyperparameters)

    _setup_model = learn = None


def test_an_algorithm_is_given_the_environments_the_seed_and_its_own_hyperparameters():
    world, config = CorridorWorld(), CorridorConfig()
    trainees = [
        SB3Trainee(
            world=world,
            capacity={"config": config},
            algorithm="tests.envtuning.trainees.test_sb3_parts:Noted",
            **options,
        )
        for options in ({}, {"seed": 3, "policy": "Own", "num_envs": 2, "device": "meta", "gamma": 0.5})
    ]
    policy, env, *rest = trainees[0].model.given
    assert (policy, env.num_envs, rest) == ("MlpPolicy", 8, [0, "cpu", {}])
    policy, env, *rest = trainees[1].model.given
    assert (policy, env.num_envs, rest) == ("Own", 2, [3, "meta", {"gamma": 0.5}])
    assert [(one.report_every, one.deterministic, one.torch_threads) for one in trainees] == [(1_000, True, 1)] * 2
    closed = []
    env.envs[1].close = lambda: closed.append(True)
    trainees[1].close()
    assert closed == [True]


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_policy_acts_with_its_own_draws_and_threads_and_leaves_the_process_s_as_they_were(deterministic):
    import torch

    asked = []

    class Net:
        def predict(self, observations, deterministic=False):
            asked.append((observations, deterministic, torch.get_num_threads(), torch.rand(1).item()))
            return "actions", "states"

    before, threads = torch.get_rng_state().tolist(), torch.get_num_threads()
    policy = SB3Policy(Net(), deterministic, threads + 1)
    assert [policy.act("seen"), policy.act("seen")] == ["actions", "actions"]
    assert [one[:3] for one in asked] == [("seen", deterministic, threads + 1)] * 2
    assert asked[0][3] != asked[1][3]
    SB3Policy(Net(), deterministic, 1).act("seen")
    assert asked[2][3] == asked[0][3]
    assert (torch.get_rng_state().tolist(), torch.get_num_threads()) == (before, threads)


def stepped(watch, *ends):
    """Steps of two copies; each end is whether it was a success."""
    for end in ends:
        infos = [{}, {} if end is None else {"is_success": end, "slice": "a", "score": 0.5 + end / 2, "case": str(end)}]
        watch.locals = {"dones": [False, end is not None], "infos": infos}
        assert watch._on_step()


@pytest.fixture
def watch():
    told = []
    one = Watch(4, told.append, CorridorWorld(), Visited())
    one.model = SimpleNamespace(
        get_env=lambda: SimpleNamespace(num_envs=2), logger=SimpleNamespace(name_to_value={"train/loss": 0.5})
    )
    one.told = told
    return one


def test_an_iteration_is_told_once_enough_steps_were_made_and_at_the_end(watch):
    stepped(watch, True)
    watch._on_rollout_start()
    assert watch.told == []
    stepped(watch, False)
    watch._on_rollout_start()
    [first] = watch.told
    outcomes = first.pop(OUTCOMES)
    assert first == {"env_steps": 4.0, "episodes": 2.0, "success_rate": 0.5, "loss": 0.5}
    assert outcomes.dump() == {"first": {"a": {"episodes": 2, "successes": 1, "score_sum": 1.5}}}
    watch._on_training_end()  # nothing since
    assert len(watch.told) == 1
    stepped(watch, None)
    watch._on_training_end()
    assert watch.told[1:] == [{"env_steps": 2.0, "episodes": 0.0, "loss": 0.5, OUTCOMES: Tally()}]
    assert watch.summary() == {"env_steps": 6.0, "episodes": 2.0, "success_rate": 0.5, "loss": 0.5}


def test_the_success_rate_of_a_call_is_that_of_its_last_thousand_steps(watch):
    assert watch.summary() == {"env_steps": 0, "episodes": 0}
    watch.history = [
        {"env_steps": 5_000.0, "episodes": 50.0, "success_rate": 0.0, "loss": 9.0},
        {"env_steps": 600.0, "episodes": 6.0, "success_rate": 0.5, "loss": 8.0},
        {"env_steps": 400.0, "episodes": 2.0, "success_rate": 1.0, "loss": 7.0},
    ]
    assert watch.summary() == {"env_steps": 6_000.0, "episodes": 58.0, "success_rate": 5 / 8, "loss": 7.0}
    watch.history[1]["env_steps"] = 599.0
    assert watch.summary()["success_rate"] == 5 / 58


def test_what_steers_training_begins_anew():
    emptied = []
    model = SimpleNamespace(
        num_timesteps=5, _episode_num=5, _n_updates=5, _current_progress_remaining=0.1, _last_obs=5, _n_calls=5,
        replay_buffer=SimpleNamespace(reset=lambda: emptied.append(True)), exploration_schedule=lambda left: left / 2,
        exploration_rate=0.05,
    )  # fmt: skip
    start_anew(model)
    assert (model.num_timesteps, model._episode_num, model._n_updates, model._n_calls) == (0, 0, 0, 0)
    assert (model._current_progress_remaining, model._last_obs, model.exploration_rate, emptied) == (
        1.0,
        None,
        0.5,
        [True],
    )
    plain = SimpleNamespace()
    start_anew(plain)
    assert not hasattr(plain, "_n_calls")
    assert not hasattr(plain, "exploration_rate")


def test_weights_that_left_the_finite_numbers_are_said_with_the_steps_and_the_rate():
    import torch

    from envtuning.trainees.base import TrainingDiverged

    model = SimpleNamespace(policy=torch.nn.Linear(1, 1), num_timesteps=1_234, learning_rate=0.5)
    raise_unless_finite(model)
    model.policy.bias.data[:] = torch.nan
    with pytest.raises(TrainingDiverged, match=r"after 1,234 env steps .* \(it is 0.5\)"):
        raise_unless_finite(model)


def test_a_cluster_is_asked_for_as_many_cores_as_threads_and_for_a_gpu_if_it_trains_there():
    assert list(SB3Trainee.resources()) == [{"CPU": 1, "GPU": 0}]
    assert list(SB3Trainee.resources(torch_threads=3, device="cuda")) == [{"CPU": 3, "GPU": 1}]
