"""Private names of Stable-Baselines3."""

from __future__ import annotations

from typing import Any

from stable_baselines3 import DQN
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import BasePolicy

TESTED = "2.9.2"
NAMES = {
    BaseAlgorithm: (
        "_last_obs", "_get_torch_save_params", "_episode_num", "_n_updates", "_current_progress_remaining"
    ),
    BasePolicy: ("_get_constructor_parameters",),
    DQN: ("_n_calls",),
}  # fmt: skip
NO_OPTION = "_init_setup_model"  # an argument of every algorithm that is not a hyperparameter


def reset_before_learning(model: BaseAlgorithm) -> None:
    """The next call of ``learn`` begins with a reset of the environments."""
    model._last_obs = None


def new_copy(policy: BasePolicy) -> BasePolicy:
    """A policy of the same form, with weights of its own."""
    return type(policy)(**policy._get_constructor_parameters())


def parts(model: BaseAlgorithm) -> list[str]:
    """The names of the networks and optimisers that the model would save."""
    return model._get_torch_save_params()[0]


def variables(model: BaseAlgorithm) -> list[str]:
    """The names of the single tensors that the model would save."""
    return model._get_torch_save_params()[1]


def reset_counters(model: Any) -> None:
    """Reset the counters of training to those before the first step."""
    model.num_timesteps = model._episode_num = model._n_updates = 0
    model._current_progress_remaining = 1.0
    if hasattr(model, "_n_calls"):  # DQN counts its steps to the target network's next update
        model._n_calls = 0
