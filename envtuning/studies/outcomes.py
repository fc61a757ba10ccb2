"""The results of a study's runs: one line per run, read from its folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from envtuning.loop.contract import load_checkpoint
from envtuning.runs.log import RunLog
from envtuning.runs.spec import SpecError
from envtuning.runs.state import RunState
from envtuning.seeds import derive
from envtuning.studies.study import Arms, Job, begun
from envtuning.worlds.episodes import pooled
from envtuning.worlds.world import Cases

IGNITED = 0.1  # a run with this success on the target counts as ignited


Curve = Sequence[tuple[int, float]]  # at each validation: the cost so far, and the success


@dataclass(frozen=True)
class Outcome:
    """One finished run."""

    arm: str
    seed: int
    success: float  # the objective on the test suite, after the last stage
    others: dict[str, float]  # the world's other rates on the test suite
    first: float  # the objective after the first stage
    spent: dict[str, int]  # by unit
    ignited_after: int | None  # the cost until validation first reached IGNITED; None: never
    tokens: int
    cost: float | None  # US dollars; None where no price is known
    incidents: int
    fallbacks: int  # answers after which the current config was kept
    curve: Curve = ()  # empty in old stored outcomes
    tests: float = 0.0  # part of the run's cost that validation and probes took; 0 in old stored outcomes


def outcome_of(run: RunLog, arm: str) -> Outcome:
    test, spec, about = run.state.test, run.plan.spec, run.plan.world.about
    if test is None:
        raise SpecError(f"{run.path} has not opened its test: finish it with `envtuning resume {run.path}`")
    usage = run.state.usage()
    curve = curve_of(run.state, run.plan.unit, about.objective)
    return Outcome(
        arm=arm,
        seed=spec.seed,
        success=pooled(test.last, about.objective),
        others={metric: pooled(test.last, metric) for metric in about.headings if metric != about.objective},
        first=pooled(test.first, about.objective),
        spent=run.state.spent,
        ignited_after=ignition(curve),
        tokens=usage.tokens,
        cost=usage.cost,
        incidents=len(run.state.incidents()),
        fallbacks=fallbacks(run.state),
        curve=curve,
        tests=tests_of(run.state, run.plan.unit),
    )


def tests_of(state: RunState, unit: str) -> float:
    """The part of the run's cost that validation and probes took, in the attempts that count."""
    charged = sum(stage.done.validated.get(unit, 0) for stage in state.done if stage.done is not None)
    return charged / max(state.spent.get(unit, 0), 1)


def fallbacks(state: RunState) -> int:
    """The number of the engineer's answers that failed, fell back or were refused, so that the current config was kept."""
    return sum(bool(stage.chosen.incidents) for stage in state.stages)


def curve_of(state: RunState, unit: str, objective: str) -> Curve:
    """Success at every validation, in order."""
    points, before = [], 0
    for stage in state.done:
        validations = (line for line in stage.metrics() if line["kind"] == "validation")
        points += [(before + int(line["spent"]), float(line.get(objective, 0.0))) for line in validations]
        before += stage.spent(unit)
    return points


def ignition(curve: Curve) -> int | None:
    """The cost until the first validation with this success; None if there is none."""
    return next((spent for spent, success in curve if success >= IGNITED), None)


def finished(arms: Arms, seeds: Sequence[int], out: Path) -> dict[tuple[str, int], RunLog]:
    """The runs with an opened test, by arm and seed. Raises ``RunError`` if a folder holds a run of another spec."""
    found = {}
    for arm, spec in arms.items():
        for seed in seeds:
            run = begun(Job(arm, spec.model_copy(update={"seed": seed}), out))
            if run is not None and run.state.test is not None:
                found[arm, seed] = run
    return found


def played_on(run: RunLog, target: BaseModel, cases: Cases) -> list[bool]:
    """Success of the last stage's trainee on these cases, played like the run's own test."""
    spec, world = run.plan.spec, run.plan.world
    trainee = run.plan.make_trainee(configs=[target])
    try:
        load_checkpoint(trainee, run.files, run.state.done[-1].checkpoint)
        seed = derive(spec.suites.seed, "play the test")
        return [episode.succeeded for episode in world.play(trainee.policy(), cases, target, seed=seed)]
    finally:
        trainee.close()
