"""``Trainee``: the methods that the loop needs of a learner, be it a neural policy or a language model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from envtuning.worlds.world import Cases, Form, World

Metrics = dict[str, float]
OnIteration = Callable[[Metrics], None]


class TrainingDiverged(RuntimeError):
    """The loss, the gradient or the weights are no longer finite; the stage's last good checkpoint is still valid."""


class WorkerLost(RuntimeError):
    """A worker died and could not be replaced; a new trainee, loaded from the last checkpoint, can continue."""


@runtime_checkable
class Trainee(Protocol):
    """Learns on a config, acts, and can be saved and loaded.

    After ``load`` and ``train(…, seed=s)`` the metrics and the policy depend on the loaded folder, the config, the
    budget and ``s`` alone, so that a stage that was killed and started again ends where it would have ended.

    Optional, where a trainee has them:
    ``reports``             the names of the training metrics that it has: a rule that needs another is refused before the run
    ``units``               the units that its budgets may have; a factory with an argument ``unit`` gets the run's unit
    ``collapse(iterations)``  says why a stage's iterations so far are a collapse, or None; recorded once, the stage continues
    ``unrewarded(iterations)``  says why nothing can have been learnt in these iterations, or None; in the same way
    ``checkpoints_inside``  True if long stages are to be saved at their validations
    ``slim(folder)``        removes from an older checkpoint what only further training needs
    """

    form: Form  # of its policy: "acts" on observations, "replies" to texts, returns "plans"

    def train(self, config: Any, budget: int, *, seed: int, on_iteration: OnIteration | None = None) -> Metrics:
        """Learn for about ``budget`` units on cases of ``config``; a new config does not reset weights or optimiser.

        The unit is the run's: env steps unless it says otherwise; an env step moves all agents of one environment once.
        Called several times in a stage, each with its seed. ``on_iteration`` gets each iteration's metrics as it ends: what
        it spent by unit (``env_steps``, ``episodes``, ``samples``, ``tokens``), ``success_rate``, ``grad_norm`` and any other
        metrics; ``workers_lost`` is the number of workers lost since the previous iteration, each counted once.
        Returns the call's metrics, with all that it spent. A trainee need not call ``on_iteration``: what ``train`` returns
        is counted. Raises ``TrainingDiverged`` when the numbers stop being finite, ``WorkerLost`` when it cannot continue.
        """
        ...

    def policy(self) -> Any:
        """The trainee's current policy, which its world plays in the form that the trainee declares; it does not learn."""
        ...

    def save(self, folder: Path) -> None:
        """Write everything that ``load`` needs into this empty folder, random state included."""
        ...

    def load(self, folder: Path) -> None:
        """Restore the saved state, in place."""
        ...

    def close(self) -> None:
        """Release processes and memory; no other method is called afterwards."""
        ...


class TraineeFactory(Protocol):
    """How the loop makes a trainee; kinds are registered in ``envtuning.trainees``.

    A class declares ``form`` as an attribute, so that a run can be refused before the trainee is made; a factory function
    may have it set on it. It may have ``check_options(**options)``, which raises ``ValueError`` for wrong options.
    """

    form: Form

    def __call__(
        self,
        *,
        world: World[Any],
        room: Mapping[str, Any],  # what `world.room` says of all configs of the run
        exclude: Sequence[Cases],  # held-out cases: never trained on
        seed: int,  # of the initial weights
        **options: Any,  # the trainee's own, from the run's file
    ) -> Trainee: ...
