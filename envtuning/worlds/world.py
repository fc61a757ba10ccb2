"""``World``: the loop's interface to an environment. The loop trains, validates and reports; a world draws, plays and judges."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Protocol

from pydantic import BaseModel
from typing_extensions import TypeVar

from engineers.knobs import KnobError, dump, find_knobs
from engineers.report import FailureCase, Split
from engineers.roles import WHOLE, find_slices, shares_of, slices_in
from engineers.shared.errors import UserError
from envtuning.outcomes import Outcome
from envtuning.worlds.episodes import Episode

if TYPE_CHECKING:
    import gymnasium as gym

Form = Literal["acts", "replies", "plans"]
FORMS: dict[Form, str] = {
    "acts": "acts on observations",
    "replies": "replies to texts",
    "plans": "returns a plan for a whole case",
}
Purpose = Literal["validation", "test", "probe"]
ONE_SLICE = WHOLE  # the name of the only slice of a config without slices


class InfeasibleConfig(UserError, ValueError):
    """No case can be drawn from this config; the message says what to do."""


class TooFewCases(UserError, ValueError):
    """The world has fewer different cases than the held-out sets need; the message says how many there are."""


@dataclass(frozen=True)
class About:
    """A world's description in words: for prompts, tables and pages."""

    name: str
    environment: str  # what it is and what the task is, in a few sentences
    objective: str = "success_rate"  # the metric that a run should raise
    # metric -> heading; all in 0…1
    rates: Mapping[str, str] = field(default_factory=lambda: {"success_rate": "success"})
    aside: frozenset[str] = frozenset()  # metrics that tell an engineer nothing about what to train on
    legend: str = "Success: the task was done before the episode ended."  # what the headings mean
    failures: Mapping[str, str] = field(default_factory=dict)  # failure kind -> what it means
    slice_label: str = "{}"  # a slice's name in tables: "{0}×{0}" for boards
    score_in_words: str = ""  # what an episode's score from 0 to 1 is, for engineers; empty: there is only success
    case: str = "case"  # what one case is called: board, task, episode
    unit: str = "env_steps"  # of budgets, unless the run's file names another

    @property
    def headings(self) -> dict[str, str]:
        """The headings of the rates, that of the objective first."""
        return {self.objective: self.rates[self.objective]} | dict(self.rates)

    def label(self, name: str) -> str:
        return self.slice_label.format(name)


class Cases(Protocol):
    """Cases of validation, test or a probe, in a fixed order."""

    def __len__(self) -> int: ...

    def save(self, path: Path) -> object:
        """Write them to exactly this path."""
        ...

    def fingerprints(self) -> frozenset[Hashable]:
        """One for each case. Cases that a learner cannot tell apart have equal fingerprints, and may be in only one of the three sets."""
        ...


C = TypeVar("C", bound=BaseModel)  # a world's configs
K = TypeVar("K", bound=Cases, default=Any)  # its cases
E = TypeVar("E", bound=Episode, default=Any)  # its episodes


class Lesson(NamedTuple):
    """A question for a language model, and an answer that is known to succeed."""

    question: str
    answer: str
    slice: str = ONE_SLICE


class World(ABC, Generic[C, K, E]):
    """One kind of environment, with configs of one pydantic model, and classes of cases and episodes. Keeps no state: a run may make it again at any time."""

    config_type: type[C]
    about: About
    forms: frozenset[Form] = frozenset({"acts"})  # the policies that it can play
    reports: frozenset[str] | None = None  # its episodes' metrics, as rules may name them; None: unknown

    def check(self, config: C) -> None:
        """Raises ``InfeasibleConfig`` if no case can be drawn from the config."""

    def check_form(self, config: C, form: Form) -> None:
        """Raises ``InfeasibleConfig`` if policies of this form cannot play the config's cases, or cannot be rewarded."""

    def check_target(self, config: C, form: Form) -> None:
        """Raises ``InfeasibleConfig`` if policies of this form cannot be judged on the config."""

    @abstractmethod
    def draw(self, config: C, per_slice: int, *, seed: int, purpose: Purpose, exclude: Sequence[Cases]) -> K:
        """``per_slice`` cases for every slice in use: the same number of each for validation and test, by shares for a probe.

        A pure function of its arguments. No case has a fingerprint of a case in ``exclude``. Raises ``InfeasibleConfig``
        or ``TooFewCases``.
        """

    @abstractmethod
    def load(self, path: Path) -> K:
        """The cases that were saved there."""

    @abstractmethod
    def play(self, policy: Any, cases: K, config: C, *, seed: int) -> Sequence[E]:
        """One judged episode per case, in order, by the config's rules; ``seed`` is for random events in the world.

        The policy is asked in batches. If it raises on a case, that case fails as ``policy_error``, with the error as its note.
        """

    def explain(self, cases: K, episode: E) -> FailureCase:
        """Describes a failed episode that ``play`` has just returned, so that a reader can see what went wrong."""
        kind = str(episode.failure)
        said = episode.note or self.about.failures.get(kind, kind.replace("_", " "))
        return FailureCase(slice=episode.slice, kind=kind, picture="", explanation=said, case_id=str(episode.case))

    def behaviour(self, cases: K, episodes: Sequence[E]) -> dict[str, dict[str, float]]:
        """Per slice, statistics of how the episodes were played, as means per episode. Empty by default."""
        return {}

    def splits(self, cases: K, episodes: Sequence[E]) -> dict[str, dict[str, Split]]:
        """Per slice, success on parts of its episodes that have something in common. Empty by default."""
        return {}

    def drawn(self, config: C, cases: K) -> dict[str, dict[str, float]]:
        """Per slice, statistics of the probed cases: shares, sizes, distances. Empty by default."""
        return {}

    def outcome(self, info: Mapping[str, Any], repeat: bool = False) -> Outcome:
        """The outcome of an episode of ``make_env``, by its last info: ``slice``, ``is_success`` or ``success``, ``score``, ``failure``."""
        success = bool(info.get("is_success", info.get("success")))
        failure = "" if success else str(info.get("failure") or "")
        return Outcome(str(info.get("slice", ONE_SLICE)), success, float(info.get("score", success)), failure, repeat)

    def blind_scores(self, config: C) -> dict[str, float]:
        """Per slice, the mean score of the best answer that ignores the question. Empty where it is not known."""
        return {}

    def film(self, cases: K, episode: Episode) -> Film | None:
        """The episode as a film; None if the world has no pictures."""
        return None

    def validated_as(self, target: C, config: C) -> C:
        """The target as the validation of a stage with this ``config`` uses it: for example with the stage's hints."""
        return target

    def capacity(self, configs: Sequence[C]) -> dict[str, Any]:
        """Facts that a trainee needs when it is made, so that it can learn on all of these configs."""
        return {}

    def config_in(self, capacity: Mapping[str, Any]) -> C:
        """A config of this capacity, to build with before the first stage's config is known."""
        return self.config_type()

    def make_env(
        self, config: C, *, exclude: Sequence[Cases], capacity: Mapping[str, Any], seed: int
    ) -> gym.Env[Any, Any]:
        """A Gymnasium environment to train in, with ``set_config``; no episode is an excluded case."""
        raise NotImplementedError(
            f"the world {self.about.name!r} has no method make_env: give it one that makes training environments"
        )

    def make_text_env(self, config: C, *, seed: int) -> gym.Env[Any, Any]:
        """A Gymnasium environment of strings, for training language models outside of the loop."""
        return self.make_env(config, exclude=(), capacity=self.capacity([config]), seed=seed)

    def lessons(self, config: C, count: int, *, seed: int, exclude: Sequence[Cases]) -> Sequence[Lesson]:
        """``count`` training cases with right answers, drawn by the shares; a pure function of its arguments. None is in ``exclude``."""
        raise NotImplementedError(
            f"the world {self.about.name!r} has no method lessons: give it one that returns certified answers"
        )

    def prepare(self) -> None:
        """Does slow preparations, such as compiling, before the first episode."""

    def slices(self, config: C) -> dict[str, float]:
        """The slices in use, in natural order, with their parts of the data; a config without slices is one slice.

        Raises ``InfeasibleConfig`` if two slices have the same name.
        """
        try:
            found = slices_in(config)
        except KnobError as error:
            raise InfeasibleConfig(str(error)) from error
        if not found:
            return {ONE_SLICE: 1.0}
        return {name: share for name, share in shares_of(dump(config), found).items() if share > 0}

    def summary(self, config: C) -> list[str]:
        """A config in words for a narrow table, with a line for each slice in use."""
        return summary_of(config, self.about)


def fingerprints_of(sets: Iterable[Cases]) -> frozenset[Any]:
    """Those of all cases of all sets."""
    return frozenset().union(*(cases.fingerprints() for cases in sets))


def offers(world: World[Any], part: str) -> bool:
    """Whether the world has this optional method: ``make_env`` or ``lessons``."""
    return getattr(type(world), part, None) is not getattr(World, part)


def raise_unless_trains(world: World[Any]) -> None:
    if not offers(world, "make_env"):
        raise ValueError(f"the world {world.about.name!r} makes no training environments: give it a make_env")


@dataclass(frozen=True)
class Film:
    """A played episode to look at."""

    title: str
    svg: str  # animated, self-contained
    frames: Sequence[str] = ()  # for a terminal, a text per step
    save: Callable[[Path, float], object] | None = None  # with the seconds of a step; for other formats
    reply: str = ""  # of a language model


def summary_of(config: BaseModel, about: About) -> list[str]:
    """'4×4 80 %, hole ratio 0.1': the share of each slice in use and its other numbers that have bounds."""
    knobs = find_knobs(config, ("*",))
    slices = [piece for piece in find_slices(knobs) if piece.share is not None]
    shares = shares_of(dump(config), slices)
    lines = []
    for piece in slices:
        if shares[piece.name] > 0:
            said = [
                f"{knob.field.replace('_', ' ')} {knob.value:.3g}"
                for knob in piece.difficulties
                if knob.value is not None
            ]
            lines.append(", ".join([f"{about.label(piece.name)} {shares[piece.name]:.0%}", *said]))
    if slices:
        return lines
    return [f"{knob.name} {knob.value:.3g}" for knob in knobs if knob.bounds and knob.value is not None]
