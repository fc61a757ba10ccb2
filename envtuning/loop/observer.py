"""``Observer``: is called at each event of the loop, to show it or to log it. An observer does not change the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engineers.own import object_at
from engineers.report import Incident
from envtuning.runs.folder import Answer, RunFolder, StageFolder


@dataclass(frozen=True)
class Progress:
    """Where a stage stands."""

    stage: int
    spent: int  # in this stage, in the budget's unit
    allowance: int  # what this stage may spend
    unit: str
    metrics: dict[str, float]  # the latest iteration's


class Observer:
    """Override the methods of the events that you need."""

    def run_began(self, run: RunFolder) -> None:
        pass

    def stage_began(self, stage: StageFolder, allowance: int) -> None:
        pass

    def progressed(self, progress: Progress) -> None:
        pass

    def validated(self, stage: StageFolder, metrics: dict[str, float]) -> None:
        pass

    def stage_ended(self, stage: StageFolder) -> None:
        pass

    def engineer_asked(self, stage: StageFolder, name: str) -> None:
        pass

    def engineer_answered(self, stage: StageFolder, answer: Answer[Any]) -> None:
        pass

    def went_wrong(self, incident: Incident) -> None:
        pass

    def test_opened(self, cases: int) -> None:
        pass

    def run_left(self) -> None:
        """Nobody works on the run any more: it is finished, stopped or interrupted."""


class UnknownObserver(ValueError):
    """There is no observer at this place."""


class Observers(Observer):
    """Several as one."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self.observers = list(observers)

    def __getattribute__(self, name: str) -> Any:
        if name not in _HEARD:
            return super().__getattribute__(name)
        each = [getattr(observer, name) for observer in self.observers]

        def tell(*arguments: Any) -> None:
            for hear in each:
                hear(*arguments)

        return tell


_HEARD = frozenset(name for name in vars(Observer) if not name.startswith("_"))


def observer_at(place: str) -> Observer:
    """The observer that ``package.module:factory`` makes (a class, or a function without arguments)."""
    if ":" not in place:
        raise UnknownObserver(f"observer {place!r}: name it as 'package.module:factory'")
    try:
        made = object_at(place)()
    except (ImportError, TypeError) as error:
        raise UnknownObserver(f"observer {place!r} cannot be made: {error}") from error
    if not isinstance(made, Observer):
        raise UnknownObserver(
            f"observer {place!r} made a {type(made).__name__}: derive it from envtuning.loop.observer.Observer"
        )
    return made
