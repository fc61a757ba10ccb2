"""``Curriculum``: the protocol between a trainer and whatever decides what to train on next.

A trainer's wrapper or callback reports finished episodes by ``observe`` or ``observe_many``, and then asks ``next``.
"""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from numpy.typing import NDArray
from pydantic import BaseModel

from engineers.knobs import dump
from engineers.shared.untrusted import NotReadable, parsed, read_bytes
from envtuning import atomic
from envtuning.errors import RunError, SpecError
from envtuning.outcomes import Outcome
from envtuning.own_code import warn

Config = Any  # a LakeConfig, or whatever your environment's configs are
Column = Sequence[Any] | NDArray[Any]  # a value for each of some finished episodes
Fits = Callable[[Config], object]  # raises an error for a config that the trainer's environments cannot take


class Curriculum(ABC):
    """Decides what to train on. A subclass sets ``config`` and writes ``observe`` and ``decide``."""

    config: Config = None  # what to train on now; None leaves the environment as it is
    version: int = 0  # number of configs that were chosen so far
    loads: int = 0  # number of loaded states with another config
    _before: tuple[Config] | None = None  # the config before the last swap, until the next state is loaded
    open_envs: int = 0  # whose wrappers report to it: reset, and not yet closed
    made_in: int  # the process that made it; a copy in another process says the same

    def __new__(cls, *_: Any, **__: Any) -> Self:
        made = super().__new__(cls)
        made.made_in = os.getpid()
        return made

    @abstractmethod
    def observe(self, outcome: Outcome) -> None:
        """Count a finished episode that began on ``config``."""

    @abstractmethod
    def decide(self) -> Config | None:
        """The next config, if it is time; else None."""

    def observe_many(
        self, slices: Column, successes: Column, scores: Column | None = None, further: Column | None = None
    ) -> None:
        """Count finished episodes. Without ``scores``, a success scores 1 and a failure 0. ``further`` marks replies to a question that
        has been answered before in its group; without it, every episode has a question of its own."""
        points = successes if scores is None else scores
        marks = [False] * len(slices) if further is None else further
        for name, success, score, mark in zip(slices, successes, points, marks, strict=True):
            self.observe(Outcome(str(name), bool(success), float(score), further=bool(mark)))

    def next(self) -> Config | None:
        """A new config if it is time, else None. The new config is in force from now on.

        It may be called after every episode. Before enough episodes it returns None and changes nothing.
        """
        config = self.decide()
        if config is None:
            return None
        alike, before = self.draws_alike(config), self.config
        self.config = config
        if alike:  # a swap would discard the episodes that are under way, for nothing
            return None
        self._before = (before,)
        self.version += 1
        return config

    def draws_alike(self, config: Config) -> bool:
        """Whether both configs give the same data. If so, this is no swap: episodes under way still count."""
        return False

    def not_applied(self, config: Config, error: Exception) -> None:
        """The trainer's environments could not take this config. If it came by the last swap, the one before it is in force again."""
        if self._before is None or config is not self.config:
            return
        (self.config,), self._before = self._before, None
        self.version += 1  # environments that took it follow back
        self.take_back(error)

    def take_back(self, error: Exception) -> None:  # noqa: B027
        """The last swap did not come about: forget what goes with its config."""

    @property
    def in_force(self) -> tuple[int, int]:
        """Another one for each config: a state that is loaded may have another config of the same version."""
        return self.version, self.loads

    def advance(self, *, steps: int = 0, iterations: int = 0) -> None:  # noqa: B027
        """Count environment steps and iterations of the trainer, for curricula that decide by these."""

    def attach(self, fits: Fits) -> None:
        """A trainer begins: its environments take configs for which ``fits`` raises nothing. Raises what ``fits`` raises."""
        if self.config is not None:
            fits(self.config)

    def raise_unless_counted(self, units: Sequence[str]) -> None:  # noqa: B027
        """Refuse a trainer's door that counts only these of episodes, iterations and steps, if this curriculum decides by another."""

    def training_ended(self) -> None:  # noqa: B027
        """The trainer has done all its steps: the time to say what never came about."""

    def metrics(self) -> dict[str, float]:
        """Numbers for a trainer's log."""
        return {}

    def settings(self) -> dict[str, Any]:
        """Arguments by which it decides: a saved state says them, and one that is loaded with others is warned of."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """The whole state, as JSON."""
        kept = {"curriculum": type(self).__name__, "version": self.version, "config": _as_json(self.config)}
        return kept | self.settings()

    def load_state_dict(self, state: dict[str, Any], renamed: Mapping[str, str] | None = None) -> None:
        """Continue from a saved state. Raises ``RunError`` for the state of another kind of curriculum.

        Curricula that count by slice take a state with other slices: ``renamed`` maps its names to those of the config.
        """
        if renamed:
            raise SpecError(f"renamed={dict(renamed)}: a {type(self).__name__} keeps nothing by slice")
        self.raise_unless_of_this_kind(state)
        version, saved = int(state["version"]), state["config"]
        read = isinstance(saved, BaseModel) or not isinstance(self.config, BaseModel)
        config = saved if read else type(self.config).model_validate(saved)
        self.loads += _as_json(config) != _as_json(self.config)  # running episodes of the same config still count
        self.config, self.version, self._before = config, version, None  # a refused state has changed nothing
        for name, mine in self.settings().items():
            if (wrote := state.get(name, mine)) != mine:
                warn(f"this state was written with {name}={wrote!r:.100}, and {name}={mine!r} continues it")

    def raise_unless_of_this_kind(self, state: Mapping[str, Any]) -> None:
        if state.get("curriculum") != type(self).__name__:
            raise RunError(
                f"this is the state of a {state.get('curriculum')}, and the curriculum is a {type(self).__name__}: "
                "make the curriculum as it was when the state was saved"
            )

    def save(self, path: str | Path) -> None:
        """Write the state to a JSON file, which is complete or absent even if the process dies."""
        try:
            text = atomic.as_json(self.state_dict())
        except TypeError as error:
            raise SpecError(
                f"the curriculum's config is no JSON ({error}): use a pydantic model for configs"
            ) from error
        atomic.write_text(Path(path), text)

    def load(self, path: str | Path, renamed: Mapping[str, str] | None = None) -> None:
        """Continue from a saved file, as ``load_state_dict`` does. Raises ``RunError`` if it is missing or damaged."""
        try:
            found = read_bytes(Path(path))
            if found is None:
                raise RunError(f"{path} is missing: give the file that `save` or the trainer's callback has written")
            self.load_state_dict(parsed(found), renamed)
        except SpecError:
            raise
        except NotReadable as error:  # "is damaged (…)", or alike
            raise RunError(f"{path} {error}: restore it from a copy") from error
        except (AttributeError, KeyError, TypeError, ValueError) as error:  # whatever shape the file has
            raise RunError(f"{path} is not the state of this curriculum ({error}): restore it from a copy") from error


class FunctionCurriculum(Curriculum):
    """A function of each episode's success that returns the next config or None. Only its last config is saved."""

    def __init__(self, function: Callable[[bool], Config | None]) -> None:
        self.function = function
        self._answer: Config | None = None

    def observe(self, outcome: Outcome) -> None:
        answer = self.function(outcome.success)
        self._answer = self._answer if answer is None else answer

    def decide(self) -> Config | None:
        answer, self._answer = self._answer, None
        return answer

    def state_dict(self) -> dict[str, Any]:
        kind = type(self.config)
        named = {"model": f"{kind.__module__}:{kind.__qualname__}"} if isinstance(self.config, BaseModel) else {}
        return super().state_dict() | named

    def load_state_dict(self, state: dict[str, Any], renamed: Mapping[str, str] | None = None) -> None:
        self.raise_unless_of_this_kind(state)
        if (name := state.get("model")) is not None:
            state = state | {"config": _model_named(name).model_validate(state["config"])}
        super().load_state_dict(state, renamed)


def _model_named(name: str) -> type[BaseModel]:
    """A class that the script has by now, as its function makes these configs: nothing is imported for a file."""
    module, _, there = name.partition(":")
    found = getattr(sys.modules.get(module), there, None)
    if not (isinstance(found, type) and issubclass(found, BaseModel)):
        raise RunError(
            f"the saved config is of the class {name!r:.200}, which is not there: define it outside of functions, and load after that"
        )
    return found


def as_curriculum(given: Curriculum | Callable[[bool], Config | None]) -> Curriculum:
    """The curriculum itself; a plain function becomes one. Raises ``SpecError`` for anything else."""
    if isinstance(given, Curriculum):
        return given
    if hasattr(given, "propose"):
        raise SpecError(
            f"{type(given).__name__} is an engineer, not a curriculum: give EngineerCurriculum(engineer, config)"
        )
    if not callable(given):
        raise SpecError(f"curriculum is a {type(given).__name__}: give a Ladder, an EngineerCurriculum or a function")
    return FunctionCurriculum(given)


@contextmanager
def applying(config: Config, curriculum: Curriculum | None) -> Iterator[None]:
    """Around what gives a config to the trainer's environments. An error of theirs says which, and the curriculum goes on without it."""
    try:
        yield
    except Exception as error:
        error.add_note(f"the config {config!r:.300} could not be applied")
        if curriculum is not None:
            curriculum.not_applied(config, error)
        raise


def warn_of_a_copy(curriculum: Curriculum) -> None:
    """Warns, once, if this process has a copy of a curriculum of another: it hears of this process's episodes alone."""
    here = os.getpid()
    if curriculum.made_in != here:
        curriculum.made_in = here
        warn(
            f"this process has a copy of the {type(curriculum).__name__}, which counts this process's episodes alone: give the curriculum "
            "to what wraps all environments, such as CurriculumVectorEnv or SB3CurriculumCallback"
        )


def _as_json(config: Config) -> Any:
    return dump(config) if isinstance(config, BaseModel) else config
