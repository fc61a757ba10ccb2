"""``Trainee``: what the loop needs of anything that learns, neural policies and language models alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from mapf_frozenlake import LakeConfig

if TYPE_CHECKING:
    from mapf_frozenlake.instance_set import InstanceSet

Metrics = dict[str, float]
OnIteration = Callable[[Metrics], None]


class TrainingDiverged(RuntimeError):
    """The loss, the gradient or the weights left the finite numbers; the stage's last good checkpoint stands."""


class WorkerLost(RuntimeError):
    """A worker died and could not be replaced; a new trainee, loaded from the last checkpoint, can go on."""


@runtime_checkable
class Trainee(Protocol):
    """Learns on a config, acts, and can be put away and taken out again.

    After ``load`` and ``train(…, seed=s)`` the metrics and the policy depend on the loaded folder, the config, the
    budget and ``s`` alone, so that a stage that was killed and started again ends where it would have ended.
    """

    def train(self, config: LakeConfig, budget: int, *, seed: int, on_iteration: OnIteration | None = None) -> Metrics:
        """Learn for about ``budget`` env steps on instances of ``config``; the swap leaves weights and optimiser alone.

        An env step moves all agents of one environment once. Called several times in a stage, each with its seed.
        ``on_iteration`` gets each iteration's metrics as it ends (its own ``env_steps``, ``success_rate``,
        ``grad_norm``, …; ``workers_lost`` where workers died and were replaced).
        Returns the call's metrics with at least ``env_steps`` (really taken), ``success_rate`` and ``grad_norm``.
        Raises ``TrainingDiverged`` when the numbers stop being finite, ``WorkerLost`` when it cannot go on.
        """
        ...

    def policy(self) -> Any:
        """What ``mapf_frozenlake.evaluate`` takes: the trainee as it is now, acting without learning."""
        ...

    def save(self, folder: Path) -> None:
        """Write everything that ``load`` needs, random state included."""
        ...

    def load(self, folder: Path) -> None:
        """Become what was saved, in place."""
        ...

    def close(self) -> None:
        """Give back processes and memory; nothing is called after it."""
        ...


class TraineeFactory(Protocol):
    """How the loop makes a trainee; kinds are registered in ``envtuning.trainees``."""

    def __call__(
        self,
        *,
        max_size: int,  # the largest board of any stage and of the validation suite
        max_agents: int,  # the most agents of any stage and of the validation suite
        exclude: InstanceSet | None,  # held-out boards: never trained on, nor are their symmetric copies
        seed: int,  # of the initial weights
        **options: Any,  # the trainee's own, from the run's file
    ) -> Trainee: ...
