"""Private names of RLlib."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ray.actor import ActorHandle
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.env.env_runner_group import EnvRunnerGroup
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from torch.optim import Optimizer

TESTED = "2.60.0"
NAMES = {
    EnvRunnerGroup: ("_worker_manager",),
    TorchLearner: ("_named_optimizers", "_weights_seq_no"),
    SingleAgentEnvRunner: ("_weights_seq_no",),
}


def take_out_of_service(group: EnvRunnerGroup, runner: int) -> None:
    """RLlib waits for this runner no more, until it has reached it again."""
    group._worker_manager.set_actor_state(runner, healthy=False)


def remote_runners(group: EnvRunnerGroup) -> Iterable[ActorHandle]:
    return group._worker_manager.actors().values()


def forget_runners(group: EnvRunnerGroup) -> None:
    """Drop the handles of all runners, with which these end."""
    group._worker_manager.clear()


def optimisers(learner: TorchLearner) -> Iterable[Optimizer]:
    return learner._named_optimizers.values()


def set_state(learner_or_runner: Any, state: dict[str, Any]) -> None:
    """Set the state with its sequence number at 0, so that RLlib accepts this state and all later ones."""
    learner_or_runner._weights_seq_no = 0
    learner_or_runner.set_state(state)
