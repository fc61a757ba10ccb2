"""``Trainee``: the loop's interface to a learner, such as a neural policy or a language model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from engineers.shared.own import declared_by
from envtuning.worlds.world import Form

DEFAULT_KIND = "rllib"
Metrics = dict[str, float]
OUTCOMES = "outcomes"  # the entry of an iteration's metrics that has a ``Tally``, or its plain dict
OnIteration = Callable[[dict[str, Any]], None]


class TrainingDiverged(RuntimeError):
    """The loss, the gradient or a weight is not finite; the stage's last good checkpoint is still valid."""


class WorkerLost(RuntimeError):
    """A worker died and could not be replaced; a new trainee, loaded from the last checkpoint, can continue."""


class Trainee(ABC):
    """Learns on a config, acts, and can be saved and loaded.

    A run makes it with the keyword arguments ``world``, ``capacity`` (``world.capacity`` of all configs of the run), ``exclude``
    (held-out cases, which it must not train on), ``seed`` (of the initial weights), its own options from the run's file, and the run's
    ``unit`` if it has such an argument. After ``load`` and ``train(…, seed=s)`` the metrics and the policy depend only on the
    loaded folder, the config, the budget and ``s``. So a stage that was killed and started again has the same end.

    Derive your class from this one: only the abstract methods are required. A function may make the trainee if its return annotation
    is such a class.
    """

    in_words: str = ""  # the learner, its algorithm and its reward, in a sentence for engineers
    form: Form | None = None  # of its policy; subclasses say "acts" (on observations), "replies" (to texts) or "plans"
    reports: frozenset[str] | None = None  # the training metrics that it has, as rules may name them; None: unknown
    outcomes_in_words: str = ""  # how its policy plays in training, in a sentence for engineers: whether it samples
    score_in_words: str = ""  # what an outcome's score is, if it is not the world's
    late_rates: Sequence[str] = ()  # metrics that a stage's report averages over the last iterations
    units: Sequence[str] | None = None  # units of its budgets; None: any
    checkpoints_inside = False  # whether a long stage is saved at every validation

    @abstractmethod
    def train(self, config: Any, budget: int, *, seed: int, on_iteration: OnIteration | None = None) -> Metrics:
        """Learn for about ``budget`` units on cases of ``config``; a new config does not reset weights or optimiser.

        The run chooses the unit; the default is env steps. An env step moves all agents of one environment once. A stage
        calls this several times, with different seeds. ``on_iteration`` gets the metrics of each iteration at its end: its cost
        by unit (``env_steps``, ``episodes``, ``samples``, ``tokens``), ``success_rate``, ``grad_norm`` and any other
        metrics; ``workers_lost`` is the number of workers lost since the previous iteration, each counted once.
        The entry ``outcomes`` is not a number: it is a ``Tally`` of the iteration's episodes, or ``{slice: {"episodes": …,
        "successes": …, "score_sum": …}}``. Where groups of replies answer a question each, ``"further": …`` says how many of the episodes
        are not the first of their group. With it, engineers read what training showed, and no probe is drawn by default.
        Returns the call's metrics, with its whole cost. A trainee need not call ``on_iteration``: the returned cost counts.
        Raises ``TrainingDiverged`` if numbers are no longer finite, ``WorkerLost`` if it cannot continue.
        """

    def blind_scores(self, config: Any) -> Mapping[str, float]:
        """Per slice, the mean score of the best answer that ignores the question, where scores are the trainee's own."""
        return {}

    @abstractmethod
    def policy(self) -> Any:
        """The trainee's current policy, of the form that the trainee declares; it does not learn while its world plays it."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write everything that ``load`` needs into this empty folder, including random state."""

    @abstractmethod
    def load(self, folder: Path) -> None:
        """Restore the saved state, in place."""

    @abstractmethod
    def close(self) -> None:
        """Release processes and memory; no other method is called afterwards."""

    @classmethod  # noqa: B027
    def check_options(cls, **options: Any) -> None:
        """Raises ``ValueError`` for wrong options, without making a trainee."""

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
        """The side of its policy's window: a checkpoint plays only in spaces with the same side. None: in all spaces."""
        return None

    @classmethod
    def check_asked_by(cls, engineer: str) -> None:
        """Raises ``ValueError`` or ``ImportError`` if the engineer of this name cannot ask its model."""
        raise ValueError(
            f"engineer {engineer!r} asks the trainee's own model, but {cls.__name__} is not a language model: train one, or "
            "choose another engineer"
        )

    def collapse(self, iterations: Sequence[Metrics]) -> str | None:
        """Why training has collapsed in this stage, or None. The loop records the first reason, and the stage continues."""
        return None

    def unrewarded(self, iterations: Sequence[Metrics]) -> str | None:
        """Why the stage's iterations so far cannot have taught anything, or None. It is recorded in the same way."""
        return None

    def slim(self, folder: Path) -> None:  # noqa: B027
        """Remove the parts of an older checkpoint that only further training needs."""

    @classmethod
    def slims(cls) -> bool:
        """Whether it overrides ``slim``."""
        return cls.slim is not Trainee.slim


def trainee_class(found: Any) -> type[Trainee]:
    """The class itself, or that of a function's return annotation. Raises ``TypeError`` if it does not derive from ``Trainee``."""
    declared = declared_by(found)
    if not (isinstance(declared, type) and issubclass(declared, Trainee)):
        name = getattr(found, "__name__", type(found).__name__)
        raise TypeError(
            f"{name} is not declared as a trainee: derive the class from envtuning.Trainee, or let the function say which "
            "class it makes: def make(**options) -> MyTrainee"
        )
    return declared
