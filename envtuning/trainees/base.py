"""``Trainee``: all that the loop knows of a learner, be it a neural policy or a language model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from engineers.own import completed
from envtuning.worlds.world import Form

DEFAULT_KIND = "rllib"
Metrics = dict[str, float]
OnIteration = Callable[[Metrics], None]


class TrainingDiverged(RuntimeError):
    """The loss, the gradient or the weights are no longer finite; the stage's last good checkpoint is still valid."""


class WorkerLost(RuntimeError):
    """A worker died and could not be replaced; a new trainee, loaded from the last checkpoint, can continue."""


class Trainee(ABC):
    """Learns on a config, acts, and can be saved and loaded.

    A run makes it with the keyword arguments ``world``, ``capacity`` (what ``world.capacity`` says of all configs of the run),
    ``exclude`` (held-out cases: never trained on), ``seed`` (of the initial weights), its own options from the run's file, and
    ``unit``, the run's, where it names that. After ``load`` and ``train(…, seed=s)`` the metrics and the policy depend on the
    loaded folder, the config, the budget and ``s`` alone, so that a stage that was killed and started again ends where it would
    have ended.

    A class with these methods need not derive from this one, and a function may make the trainee: what they leave out is as here.
    """

    in_words: str = ""  # what learns, by which algorithm and from which reward, in a sentence for engineers
    form: Form | None = None  # of its policy; each says "acts" (on observations), "replies" (to texts) or "plans"
    reports: frozenset[str] | None = None  # the training metrics that it has, as rules may name them; None: unknown
    late_rates: Sequence[str] = ()  # metrics that a stage's report says as the mean of the last iterations
    units: Sequence[str] | None = None  # that its budgets may be in; None: any
    checkpoints_inside = False  # whether long stages are to be saved at their validations

    @abstractmethod
    def train(self, config: Any, budget: int, *, seed: int, on_iteration: OnIteration | None = None) -> Metrics:
        """Learn for about ``budget`` units on cases of ``config``; a new config does not reset weights or optimiser.

        The unit is the run's: env steps unless it says otherwise; an env step moves all agents of one environment once.
        Called several times in a stage, each with its seed. ``on_iteration`` gets each iteration's metrics as it ends: what
        it spent by unit (``env_steps``, ``episodes``, ``samples``, ``tokens``), ``success_rate``, ``grad_norm`` and any other
        metrics; ``workers_lost`` is the number of workers lost since the previous iteration, each counted once.
        Returns the call's metrics, with all that it spent. A trainee need not call ``on_iteration``: what ``train`` returns
        is counted. Raises ``TrainingDiverged`` when the numbers stop being finite, ``WorkerLost`` when it cannot continue.
        """

    @abstractmethod
    def policy(self) -> Any:
        """The trainee's current policy, which its world plays in the form that the trainee declares; it does not learn."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write everything that ``load`` needs into this empty folder, random state included."""

    @abstractmethod
    def load(self, folder: Path) -> None:
        """Restore the saved state, in place."""

    @abstractmethod
    def close(self) -> None:
        """Release processes and memory; no other method is called afterwards."""

    @classmethod  # noqa: B027
    def check_options(cls, **options: Any) -> None:
        """Raises ``ValueError`` for options that it cannot be made with; makes nothing."""

    @classmethod  # noqa: B027
    def check_world(cls, world: Any) -> None:
        """Raises ``ValueError`` for a world that it cannot learn in, though that plays policies of its form."""

    @classmethod
    def resources(cls, **options: Any) -> Sequence[Mapping[str, float]]:
        """What a run of it takes on a Ray cluster, as Ray counts: first the run's own process, then each actor that it starts.

        A GPU that is named here is for a cluster that has any; on one without, the trainee computes on CPUs.
        """
        return ({"CPU": 1},)

    @classmethod
    def window_in(cls, capacity: Mapping[str, Any], **options: Any) -> int | None:
        """The side of what its policy sees: a checkpoint plays only in rooms where this is the same. None: in any."""
        return None

    @classmethod
    def check_asked_by(cls, engineer: str) -> None:
        """Raises ``ValueError`` or ``ImportError`` where the engineer of this name cannot ask its model."""
        raise ValueError(
            f"engineer {engineer!r} asks the trainee's own model, and {cls.__name__} is not a language model: train one, or "
            "choose another engineer"
        )

    def collapse(self, iterations: Sequence[Metrics]) -> str | None:
        """Why a stage's iterations so far are a collapse, or None; recorded once, the stage continues."""
        return None

    def unrewarded(self, iterations: Sequence[Metrics]) -> str | None:
        """Why nothing can have been learnt in a stage's iterations so far, or None; recorded in the same way."""
        return None

    def slim(self, folder: Path) -> None:  # noqa: B027
        """Remove from an older checkpoint what only further training needs."""

    @classmethod
    def slims(cls) -> bool:
        """Whether it has a ``slim`` of its own."""
        return cls.slim is not Trainee.slim


def as_trainee(made: Any) -> Trainee:
    """An object with a trainee's methods as a ``Trainee``. Raises ``TypeError`` where it lacks one that it needs."""
    return made if isinstance(made, Trainee) else as_kind(made)()


def as_kind(found: Any) -> type[Trainee]:
    """The class itself; of another one, of a function that makes trainees, or of an object: what it declares, and the defaults."""
    if isinstance(found, type) and issubclass(found, Trainee):
        return found
    return completed(found, Trainee)
