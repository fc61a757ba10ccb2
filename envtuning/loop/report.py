"""Build the typed ``StageReport`` that an engineer reads, from a stage's outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any

import numpy as np

from engineers.knobs import dump
from engineers.report import StageReport
from envtuning.loop.inside import StageSoFar
from envtuning.runs.plan import Plan
from envtuning.runs.state import RunState
from envtuning.worlds.episodes import Amounts, Episode, slice_results, spread

CURVE_POINTS = 20
LATELY = 10  # iterations that the trainee's late rates are the mean of


@dataclass
class StageOutcome:
    """A finished stage, as input for its report."""

    run: str  # its name
    number: int
    trained_on: Any  # the config that it ended on
    so_far: StageSoFar
    validation: Any  # cases
    episodes: Sequence[Episode]  # of the closing validation
    probe: Any | None  # cases
    probe_episodes: Sequence[Episode]
    late_rates: Sequence[str]  # metrics averaged over the last iterations
    reason: str

    @property
    def spent(self) -> Amounts:
        """The cost of the attempt that counts."""
        return dict(self.so_far.trained + self.so_far.validated)


def build_report(plan: Plan, state: RunState, outcome: StageOutcome) -> StageReport:
    """The stage's report; ``state`` is the run's state before the stage was done."""
    spec, world = plan.spec, plan.world
    about = world.about
    return StageReport(
        run=outcome.run,
        stage=outcome.number,
        environment=about.environment,
        objective=about.objective,
        aside=sorted(about.aside),
        failure_meanings=dict(about.failures),
        config=dump(outcome.trained_on),
        target=dump(plan.target),
        trainee=trainee_in_words(plan),
        rounds_left=None if spec.total is not None else max(0, len(spec.stages) - outcome.number - 1),
        budget_left=max(0, spec.budget - state.spent.get(plan.unit, 0) - outcome.spent.get(plan.unit, 0)),
        unit=plan.unit,
        cost={unit: float(amount) for unit, amount in outcome.spent.items()},
        results=slice_results(outcome.episodes),
        training_results=slice_results(outcome.probe_episodes),
        failure_cases=[
            world.explain(outcome.validation, episode)
            for episode in spread(outcome.episodes, spec.suites.failure_cases)
        ],
        behaviour=world.behaviour(outcome.validation, outcome.episodes),
        splits=world.splits(outcome.validation, outcome.episodes),
        environment_stats=world.drawn(outcome.trained_on, outcome.probe) if outcome.probe is not None else {},
        history=[stage.record for stage in state.done],
        training=bookkeeping(plan, outcome),
        incidents=[*state.incidents(), *outcome.so_far.incidents],
    )


def trainee_in_words(plan: Plan) -> str:
    """The trainee in words, with the algorithm if the run's file names it."""
    asked = plan.spec.trainee
    said = plan.trainee.declared.in_words
    algorithm = asked.options.get("algorithm")
    return f"{said} Algorithm: {algorithm}." if said and isinstance(algorithm, str) else said


def bookkeeping(plan: Plan, outcome: StageOutcome) -> dict[str, Any]:
    """The run's progress and its training: numbers, and curves of at most ``CURVE_POINTS`` points."""
    so_far, iterations, unit = outcome.so_far, outcome.so_far.iterations, plan.unit
    norms = [entry["grad_norm"] for entry in iterations if "grad_norm" in entry]
    details: dict[str, Any] = {
        "round": outcome.number,
        "rounds": len(plan.spec.stages),
        f"trained_{unit}": so_far.trained[unit],
        f"validated_{unit}": so_far.validated[unit],
        "iterations": len(iterations),
        "why_it_ended": outcome.reason,
    }
    if plan.spec.total is not None:
        del details["rounds"]  # the last stage is repeated until the budget is spent
    if norms:
        level = fmean(norms)
        details["grad_norm"] = round(level, 4)
        details["grad_norm_variation"] = round(pstdev(norms) / level, 3) if level else 0.0
    for name in outcome.late_rates:
        values = [entry[name] for entry in iterations if name in entry][-LATELY:]
        if values:
            details[name] = round(fmean(values), 4)
    for name in ("success_rate", "grad_norm"):
        values = [entry[name] for entry in iterations if name in entry]
        if values:
            details[f"{name}_curve"] = [round(value, 4) for value in thinned(values, CURVE_POINTS)]
    objective = plan.world.about.objective
    validations = [entry[objective] for entry in so_far.validations if objective in entry]
    if validations:
        details[f"{objective}_curve"] = [round(value, 4) for value in validations]
    return details


def thinned(values: Sequence[float], points: int) -> list[float]:
    """At most ``points`` values: means of equal stretches."""
    if len(values) <= points:
        return list(values)
    return [float(part.mean()) for part in np.array_split(np.asarray(values), points)]
