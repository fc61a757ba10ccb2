"""Build the typed ``StageReport`` that an engineer reads, from the attempt that a stage ended with."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, pstdev
from typing import Any

import numpy as np

from engineers.knobs import dump
from engineers.report import StageReport
from envtuning import outcomes
from envtuning.loop.attempt import Attempt
from envtuning.runs.plan import Plan
from envtuning.worlds.episodes import slice_results, spread

CURVE_POINTS = 20
LATELY = 10  # iterations that the trainee's late rates are the mean of


def build_report(attempt: Attempt) -> StageReport:
    """The report of the run's last stage, which ends with this attempt."""
    log, plan, spec, world = attempt.session.log, attempt.session.plan, attempt.session.spec, attempt.session.plan.world
    number, about, cases = attempt.session.stage.number, world.about, attempt.session.suites.validation
    return StageReport(
        run=log.name,
        stage=number,
        environment=about.environment,
        objective=about.objective,
        aside=sorted(about.aside),
        failure_meanings=dict(about.failures),
        config=dump(attempt.config),
        target=dump(plan.target),
        trainee=trainee_in_words(plan),
        rounds_left=None if spec.total is not None else max(0, len(spec.stages) - number - 1),
        budget_left=max(0, spec.budget - log.state.spent.get(plan.unit, 0) - attempt.cost.get(plan.unit, 0)),
        unit=plan.unit,
        cost=what_it_took(attempt),
        results=slice_results(attempt.episodes),
        training_results=outcomes.slice_results(attempt.outcomes, about.objective),
        own_config_results=slice_results(attempt.probe_episodes),
        **what_outcomes_are(attempt),
        failure_cases=[
            world.explain(cases, episode) for episode in spread(attempt.episodes, spec.suites.failure_cases)
        ],
        behaviour=world.behaviour(cases, attempt.episodes),
        splits=world.splits(cases, attempt.episodes),
        environment_stats=what_was_drawn(attempt),
        history=[stage.record for stage in log.state.done],
        training=bookkeeping(attempt),
        incidents=[*log.state.incidents(), *attempt.incidents],
    )


def what_it_took(attempt: Attempt) -> dict[str, float]:
    """The stage's cost, validation included, in the units that its training counts: others would tell validation alone as the whole stage."""
    return {
        unit: float(amount)
        for unit, amount in attempt.cost.items()
        if attempt.trained.get(unit) or unit == attempt.unit
    }


def what_outcomes_are(attempt: Attempt) -> dict[str, Any]:
    """The report's fields that explain training's outcomes; a trainee's own score comes before the world's."""
    declared, world = attempt.session.plan.trainee.declared, attempt.session.plan.world
    if not attempt.outcomes:
        return {}
    own, blind = declared.score_in_words, dict[str, float]()
    judge = attempt.trainee if own else world
    for config in (attempt.config, *(stage.config for stage in reversed(attempt.session.log.state.done))):
        if world.slices(config).keys() - blind.keys():  # a slice without data now is still shown as it was
            blind = {**judge.blind_scores(config), **blind}
    return {
        "score_in_words": own or world.about.score_in_words,
        "blind_scores": {name: round(score, 4) for name, score in blind.items()},
        "outcomes_in_words": attempt.trainee.outcomes_in_words,
    }


def what_was_drawn(attempt: Attempt) -> dict[str, dict[str, float]]:
    """A sample of the config in the world's own numbers; how much there was of each slice is from training, if it gives outcomes."""
    world, tally = attempt.session.plan.world, outcomes.total(attempt.outcomes)
    stats = dict(world.drawn(attempt.config, attempt.probe)) if attempt.probe is not None else {}
    for name in world.slices(attempt.config) if tally.episodes else ():
        trained = sum(part[name].episodes for part in (tally.first, tally.repeats) if name in part)
        stats[name] = {**stats.get(name, {}), "share": trained / tally.episodes, "episodes": float(trained)}
    return stats


def trainee_in_words(plan: Plan) -> str:
    """The trainee in words, with the algorithm if the run's file names it."""
    asked = plan.spec.trainee
    said = plan.trainee.declared.in_words
    algorithm = asked.options.get("algorithm")
    return f"{said} Algorithm: {algorithm}." if said and isinstance(algorithm, str) else said


def bookkeeping(attempt: Attempt) -> dict[str, str | float | list[float]]:
    """The run's progress and its training: numbers, and curves of at most ``CURVE_POINTS`` points."""
    spec, iterations, unit = attempt.session.spec, attempt.iterations, attempt.unit
    # Where the last stage is repeated until the budget is spent, nobody knows the number of rounds.
    rounds = {"rounds": len(spec.stages)} if spec.total is None else {}
    details: dict[str, str | float | list[float]] = {
        "round": attempt.session.stage.number,
        **rounds,
        f"trained_{unit}": attempt.trained[unit],
        f"validated_{unit}": attempt.validated[unit],
        "iterations": len(iterations),
        "why_it_ended": attempt.reason,
    }
    if norms := of_each(iterations, "grad_norm"):
        level = fmean(norms)
        details["grad_norm"] = round(level, 4)
        details["grad_norm_variation"] = round(pstdev(norms) / level, 3) if level else 0.0
    for name in attempt.trainee.late_rates:
        if values := of_each(iterations, name)[-LATELY:]:
            details[name] = round(fmean(values), 4)
    for name in ("success_rate", "grad_norm"):
        if values := of_each(iterations, name):
            details[f"{name}_curve"] = [round(value, 4) for value in thinned(values, CURVE_POINTS)]
    objective = attempt.session.plan.world.about.objective
    if validations := of_each(attempt.validations, objective):
        details[f"{objective}_curve"] = [round(value, 4) for value in validations]
    return details


def of_each(entries: Sequence[dict[str, float]], name: str) -> list[float]:
    """A metric's values, from the iterations or validations that have it."""
    return [entry[name] for entry in entries if name in entry]


def thinned(values: Sequence[float], points: int) -> list[float]:
    """At most ``points`` values: means of equal stretches."""
    if len(values) <= points:
        return list(values)
    return [float(part.mean()) for part in np.array_split(np.asarray(values), points)]
