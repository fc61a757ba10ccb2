"""The results of a study's runs: one line per run, read from its folder, and its test case by case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from envtuning.loop.contract import load_checkpoint
from envtuning.runs import atomic, checked
from envtuning.runs.log import RunLog
from envtuning.runs.seeds import derive
from envtuning.runs.spec import SpecError
from envtuning.runs.state import RunState
from envtuning.studies.study import Arms, Job, begun
from envtuning.worlds.episodes import pooled

IGNITED = 0.1  # success on the target from which a run counts as ignited
OUTCOMES_FILE = "test_outcomes.json"  # 0 or 1 per test case, in the suite's order


@dataclass(frozen=True)
class Outcome:
    """One finished run."""

    arm: str
    seed: int
    success: float  # the objective on the test suite, after the last stage
    first: float  # after the first stage
    spent: int  # of the budget
    ignited_after: int | None  # what was spent when validation first reached IGNITED; None: never
    incidents: int
    fallbacks: int  # answers after which the current config went on


def outcome_of(run: RunLog, arm: str) -> Outcome:
    test, spec, objective = run.state.test, run.plan.spec, run.plan.world.about.objective
    if test is None:
        raise SpecError(f"{run.path} has not opened its test: finish it with `envtuning resume {run.path}`")
    return Outcome(
        arm=arm,
        seed=spec.seed,
        success=pooled(test.last, objective),
        first=pooled(test.first, objective),
        spent=run.state.spent.get(run.plan.unit, 0),
        ignited_after=ignition(run.state, run.plan.unit, objective),
        incidents=len(run.state.incidents()),
        fallbacks=fallbacks(run.state),
    )


def fallbacks(state: RunState) -> int:
    """How many of the engineer's answers failed, fell back or were refused, so that the current config went on."""
    return sum(bool(answer.incidents) for answer in state.answers)


def ignition(state: RunState, unit: str, objective: str) -> int | None:
    """What had been spent at the first validation with so much success."""
    before = 0
    for stage in state.done:
        for line in stage.metrics():
            if line["kind"] == "validation" and line.get(objective, 0.0) >= IGNITED:
                return before + int(line["spent"])
        before += stage.done.spent.get(unit, 0) if stage.done else 0
    return None


def finished(arms: Arms, seeds: Sequence[int], out: Path) -> dict[tuple[str, int], RunLog]:
    """The runs of a study whose test is open, by arm and seed. Raises ``RunError`` where a folder holds a run of another spec."""
    found = {}
    for arm, spec in arms.items():
        for seed in seeds:
            run = begun(Job(arm, spec.model_copy(update={"seed": seed}), out))
            if run is not None and run.state.test is not None:
                found[arm, seed] = run
    return found


def test_outcomes(run: RunLog) -> NDArray[np.float64]:
    """Success of the last stage's trainee on each test case: played again from its checkpoint the first time, then kept."""
    path = run.path / OUTCOMES_FILE
    found = checked.figures(path, list[Literal[0, 1]])
    if found is None:
        found = [int(value) for value in played_on(run, run.plan.target, run.cases("test"))]
        atomic.write_json(path, found)
    return np.asarray(found, float)


test_outcomes.__test__ = False  # type: ignore[attr-defined]  # not a pytest function


def played_on(run: RunLog, target: object, cases: object) -> list[bool]:
    """Success of the last stage's trainee on these cases, as the run's own test would play them."""
    spec, world = run.plan.spec, run.plan.world
    trainee = run.plan.make_trainee(configs=[target])
    try:
        load_checkpoint(trainee, run.files, run.state.done[-1].checkpoint)
        seed = derive(spec.suites.seed, "play the test")
        return [episode.succeeded for episode in world.play(trainee.policy(), cases, target, seed=seed)]
    finally:
        trainee.close()


def matrix(runs: Mapping[tuple[str, int], RunLog], arm: str, seeds: Sequence[int]) -> NDArray[np.float64]:
    """[seeds, cases] of an arm."""
    return np.stack([test_outcomes(runs[arm, seed]) for seed in seeds])
