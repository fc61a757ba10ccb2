"""The held-out sets of a run, drawn once and stored. Training, validation and test have no case in common."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel

from envtuning.runs.log import RunLog
from envtuning.runs.plan import Plan
from envtuning.seeds import derive
from envtuning.worlds.world import Cases

PROBED = 20  # cases a slice, unless the run's file says how many


@dataclass(frozen=True)
class Suites:
    """The cases that no trainee may train on."""

    validation: Cases  # the engineer, the transitions and any search see its results
    test: Cases | None  # opened once, after the last stage; no decision reads it

    @property
    def held_out(self) -> tuple[Cases, ...]:
        return (self.validation,) if self.test is None else (self.validation, self.test)


def open_suites(run: RunLog) -> Suites:
    """The run's held-out sets, drawn and stored the first time."""
    plan = run.plan
    validation = run.cases("validation", lambda: draw_validation(plan))
    if not plan.spec.suites.test_per_slice:
        return Suites(validation, None)
    return Suites(validation, run.cases("test", lambda: draw_test(plan, validation)))


def draw_suites(plan: Plan) -> Suites:
    """The sets of a run of this plan, without a run."""
    validation = draw_validation(plan)
    return Suites(validation, draw_test(plan, validation) if plan.spec.suites.test_per_slice else None)


def draw_validation(plan: Plan) -> Cases:
    suites = plan.spec.suites
    seed = derive(suites.seed, "validation")
    return plan.world.draw(plan.target, suites.validation_per_slice, seed=seed, purpose="validation", exclude=())


def draw_test(plan: Plan, validation: Cases) -> Cases:
    suites = plan.spec.suites
    seed = derive(suites.seed_of_test, "test")
    return plan.world.draw(plan.target, suites.test_per_slice, seed=seed, purpose="test", exclude=(validation,))


def draw_probe(plan: Plan, config: BaseModel, seed: int, held_out: tuple[Cases, ...]) -> Cases | None:
    """Cases drawn by the stage's own config: a sample of what it trains on."""
    asked = plan.spec.suites.probe_per_slice
    count = PROBED if asked is None else asked
    if not count:
        return None
    return plan.world.draw(config, count, seed=derive(seed, "probe"), purpose="probe", exclude=held_out)
