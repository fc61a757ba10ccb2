"""The held-out sets of a run, drawn once and stored. Training, validation and test have no case in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from envtuning.runs.log import RunLog
from envtuning.runs.seeds import derive
from envtuning.runs.spec import RunSpec


@dataclass(frozen=True)
class Suites:
    """The cases that no trainee may train on."""

    validation: Any  # the engineer, the transitions and any search see its results
    test: Any | None  # opened once, after the last stage; no decision reads it

    @property
    def held_out(self) -> tuple[Any, ...]:
        return (self.validation,) if self.test is None else (self.validation, self.test)


def open_suites(run: RunLog) -> Suites:
    """The run's held-out sets, drawn and stored the first time."""
    spec = run.plan.spec
    validation = run.cases("validation", lambda: draw_validation(spec))
    if not spec.suites.test_per_slice:
        return Suites(validation, None)
    return Suites(validation, run.cases("test", lambda: draw_test(spec, validation)))


def draw_suites(spec: RunSpec) -> Suites:
    """The same sets as a run of this spec has, without a run."""
    validation = draw_validation(spec)
    return Suites(validation, draw_test(spec, validation) if spec.suites.test_per_slice else None)


def draw_validation(spec: RunSpec) -> Any:
    seed = derive(spec.suites.seed, "validation")
    return spec.world.made.draw(
        spec.target, spec.suites.validation_per_slice, seed=seed, purpose="validation", exclude=()
    )


def draw_test(spec: RunSpec, validation: Any) -> Any:
    seed = derive(spec.suites.seed_of_test, "test")
    return spec.world.made.draw(
        spec.target, spec.suites.test_per_slice, seed=seed, purpose="test", exclude=(validation,)
    )


def draw_probe(spec: RunSpec, config: Any, seed: int, held_out: tuple[Any, ...]) -> Any | None:
    """Cases as the stage's own config deals them: what training really looks like."""
    if not spec.suites.probe_per_slice:
        return None
    return spec.world.made.draw(
        config, spec.suites.probe_per_slice, seed=derive(seed, "probe"), purpose="probe", exclude=held_out
    )
