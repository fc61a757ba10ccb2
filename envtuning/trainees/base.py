"""``Trainee``: the loop's interface to a learner, such as a neural policy or a language model."""

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

    A run makes it with the keyword arguments ``world``, ``capacity`` (``world.capacity`` of all configs of the run), ``exclude``
    (held-out cases: never trained on), ``seed`` (of the initial weights), its own options from the run's file, and the run's
    ``unit`` if it has such an argument. After ``load`` and ``train(…, seed=s)`` the metrics and the policy depend only on the
    loaded folder, the config, the budget and ``s``. So a stage that was killed and started again has the same end.

    A class with these methods need not derive from this one, and a function may make the trainee. This class gives missing parts.
    """

    in_words: str = ""  # the learner, its algorithm and its reward, in a sentence for engineers
    form: Form | None = None  # of its policy; each says "acts" (on observations), "replies" (to texts) or "plans"
    reports: frozenset[str] | None = None  # the training metrics that it has, as rules may name them; None: unknown
    late_rates: Sequence[str] = ()  # metrics that a stage's report has as the mean of the last iterations
    units: Sequence[str] | None = None  # units of its budgets; None: any
    checkpoints_inside = False  # whether long stages are saved at their validations

    @abstractmethod
    def train(self, config: Any, budget: int, *, seed: int, on_iteration: OnIteration | None = None) -> Metrics:
        """Learn for about ``budget`` units on cases of ``config``; a new config does not reset weights or optimiser.

        The unit is the run's: env steps unless it says otherwise; an env step moves all agents of one environment once.
        Called several times in a stage, each with its seed. ``on_iteration`` gets each iteration's metrics at its end: its cost
        by unit (``env_steps``, ``episodes``, ``samples``, ``tokens``), ``success_rate``, ``grad_norm`` and any other
        metrics; ``workers_lost`` is the number of workers lost since the previous iteration, each counted once.
        Returns the call's metrics, with its whole cost. A trainee need not call ``on_iteration``: the returned cost counts.
        Raises ``TrainingDiverged`` if numbers are no longer finite, ``WorkerLost`` if it cannot continue.
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
        """Raises ``ValueError`` for options that do not fit; makes nothing."""

    @classmethod  # noqa: B027
    def check_world(cls, world: Any) -> None:
        """Raises ``ValueError`` for a world in which it cannot learn, although the world plays policies of its form."""

    @classmethod
    def resources(cls, **options: Any) -> Sequence[Mapping[str, float]]:
        """The resources of a run on a Ray cluster, in Ray's units: first the run's own process, then each actor that it starts.

        A GPU is used only if the cluster has one; otherwise the trainee computes on CPUs.
        """
        return ({"CPU": 1},)

    @classmethod
    def window_in(cls, capacity: Mapping[str, Any], **options: Any) -> int | None:
        """The side of its policy's view: a checkpoint plays only in spaces with the same side. None: in any."""
        return None

    @classmethod
    def check_asked_by(cls, engineer: str) -> None:
        """Raises ``ValueError`` or ``ImportError`` if the engineer of this name cannot ask its model."""
        raise ValueError(
            f"engineer {engineer!r} asks the trainee's own model, and {cls.__name__} is not a language model: train one, or "
            "choose another engineer"
        )

    def collapse(self, iterations: Sequence[Metrics]) -> str | None:
        """The reason why a stage's iterations so far are a collapse, or None. It is recorded once; the stage continues."""
        return None

    def unrewarded(self, iterations: Sequence[Metrics]) -> str | None:
        """The reason why a stage's iterations so far cannot have taught anything, or None; recorded in the same way."""
        return None

    def slim(self, folder: Path) -> None:  # noqa: B027
        """Remove from an older checkpoint the parts that only further training needs."""

    @classmethod
    def slims(cls) -> bool:
        """Whether it has a ``slim`` of its own."""
        return cls.slim is not Trainee.slim


def as_trainee(made: Any) -> Trainee:
    """An object with a trainee's methods as a ``Trainee``. Raises ``TypeError`` if it lacks a required one."""
    return made if isinstance(made, Trainee) else as_kind(made)()


def as_kind(found: Any) -> type[Trainee]:
    """The class itself, or, for another class, a function or an object, a class with its declarations and the defaults."""
    if isinstance(found, type) and issubclass(found, Trainee):
        return found
    return completed(found, Trainee)
