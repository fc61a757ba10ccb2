"""``Trainee``: what the loop needs of anything that learns, neural policies and language models alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from envtuning.worlds.world import Cases, Form, World

Metrics = dict[str, float]
OnIteration = Callable[[Metrics], None]


class TrainingDiverged(RuntimeError):
    """The loss, the gradient or the weights left the finite numbers; the stage's last good checkpoint stands."""


class WorkerLost(RuntimeError):
    """A worker died and could not be replaced; a new trainee, loaded from the last checkpoint, can go on."""


@runtime_checkable
class Trainee(Protocol):
    """Learns on a config, acts, and can be saved and loaded.

    After ``load`` and ``train(…, seed=s)`` the metrics and the policy depend on the loaded folder, the config, the
    budget and ``s`` alone, so that a stage that was killed and started again ends where it would have ended.

    Optional, where a trainee has them:
    ``reports``             the names of the training metrics that it has: a rule that needs another is refused before the run
    ``units``               those that its budgets may be in; a factory with an argument ``unit`` is given the run's
    ``collapse(iterations)``  why a stage's iterations so far are a collapse, or None: recorded once, and the stage continues
    ``checkpoints_inside``  True where long stages are to be saved at their validations
    ``slim(folder)``        takes out of an older checkpoint what only training on from it needs
    """

    form: Form  # of its policy: "acts" on observations, "replies" to texts, returns "plans"

    def train(self, config: Any, budget: int, *, seed: int, on_iteration: OnIteration | None = None) -> Metrics:
        """Learn for about ``budget`` units on cases of ``config``; the swap leaves weights and optimiser alone.

        The unit is the run's: env steps unless it says otherwise; an env step moves all agents of one environment once.
        Called several times in a stage, each with its seed. ``on_iteration`` gets each iteration's metrics as it ends: what
        it spent by unit (``env_steps``, ``episodes``, ``samples``, ``tokens``), ``success_rate``, ``grad_norm`` and whatever
        else there is; ``workers_lost``, how many workers were lost since the iteration before, each told once.
        Returns the call's metrics, with all that it spent. A trainee may leave out ``on_iteration``: what ``train`` returns
        counts. Raises ``TrainingDiverged`` when the numbers stop being finite, ``WorkerLost`` when it cannot go on.
        """
        ...

    def policy(self) -> Any:
        """The trainee as it is now, acting without learning: what its world plays, in the form that it declares."""
        ...

    def save(self, folder: Path) -> None:
        """Write everything that ``load`` needs into this empty folder, random state included."""
        ...

    def load(self, folder: Path) -> None:
        """Become what was saved, in place."""
        ...

    def close(self) -> None:
        """Give back processes and memory; nothing is called after it."""
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
