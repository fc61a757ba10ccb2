"""``Observer``: the loop calls it at each event, to show or log it. An observer does not change the run."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partialmethod
from typing import Any

from engineers.report import Incident
from engineers.shared.own import chosen, object_at
from engineers.shared.places import with_place
from envtuning.errors import SpecError
from envtuning.outcomes import Tally
from envtuning.runs.log import RunLog
from envtuning.runs.state import Choice, Stage


@dataclass(frozen=True)
class Progress:
    """The progress of a stage."""

    stage: int
    spent: int  # by this stage, in the budget's unit
    allowance: int  # the stage's budget
    unit: str
    metrics: dict[str, float]  # of the latest iteration
    outcomes: Tally = field(default_factory=Tally)  # of the latest iteration, by slice


class Observer:
    """Override the methods of the events that you need."""

    def run_began(self, run: RunLog) -> None:
        pass

    def stage_began(self, stage: Stage, allowance: int) -> None:
        pass

    def progressed(self, progress: Progress) -> None:
        pass

    def validated(self, stage: Stage, metrics: dict[str, float]) -> None:
        pass

    def stage_ended(self, stage: Stage) -> None:
        pass

    def engineer_asked(self, stage: Stage, name: str) -> None:
        pass

    def engineer_answered(self, stage: Stage, choice: Choice) -> None:
        pass

    def went_wrong(self, incident: Incident) -> None:
        pass

    def test_opened(self, cases: int) -> None:
        pass

    def run_left(self) -> None:
        """This process no longer works on the run: it is finished, stopped or interrupted."""


class Observers(Observer):
    """Several observers as one. An observer that raises gives one warning; the other observers and the run continue."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self.observers = list(observers)
        self.raised: list[Observer] = []

    def _tell(self, event: str, *arguments: Any) -> None:
        for observer in self.observers:
            try:
                getattr(observer, event)(*arguments)
            except Exception as error:
                self._warn(observer, f"{event} raised {with_place(error)}")

    def _warn(self, observer: Observer, said: str) -> None:
        if not any(observer is one for one in self.raised):
            self.raised.append(observer)
            warnings.warn(
                f"observer {type(observer).__name__}: {said}; the run goes on, and nothing more is said of this observer",
                RuntimeWarning,
                stacklevel=4,
            )


for _event in [name for name in vars(Observer) if not name.startswith("_")]:
    setattr(Observers, _event, partialmethod(Observers._tell, _event))


def observer_at(place: str) -> Observer:
    """The observer that ``package.module:factory`` makes (a class, or a function without arguments). The caller chose it, so it is trusted."""
    if ":" not in place:
        raise SpecError(f"observer {place!r}: name it as 'package.module:factory'")
    chosen("observer", {"place": place})
    try:
        made = object_at(place)()
    except Exception as error:
        raise SpecError(f"observer {place!r} cannot be made: {type(error).__name__}: {error}") from error
    if not isinstance(made, Observer):
        raise SpecError(
            f"observer {place!r} made a {type(made).__name__}: derive it from envtuning.loop.observer.Observer"
        )
    return made
