"""What is left to do of a run: a function of its plan and its state alone, so that resuming needs nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from envtuning.runs.plan import Plan
from envtuning.runs.state import RunState


@dataclass(frozen=True)
class Choose:
    """Settle the stage's config, asking the engineer where it is its turn."""

    stage: int


@dataclass(frozen=True)
class Train:
    """Train, validate and report the stage, from the checkpoint before it."""

    stage: int


@dataclass(frozen=True)
class Test:
    """Open the test suite."""

    __test__ = False


def next_task(plan: Plan, state: RunState) -> Choose | Train | Test | None:
    """The run's next task. None: the run is finished."""
    begun = len(state.stages)
    if len(state.done) < begun:
        return Train(begun - 1)
    if is_planned(plan, state, begun):
        return Choose(begun)
    if plan.spec.suites.test_per_slice and state.test is None:
        return Test()
    return None


def is_planned(plan: Plan, state: RunState, number: int) -> bool:
    """Whether there is such a stage: one that is listed, or a repetition of the last that can still train."""
    spec = plan.spec
    if number < len(spec.stages):
        return True
    return spec.total is not None and spec.total - state.spent.get(plan.unit, 0) > closing_cost(plan, state, number)


def closing_cost(plan: Plan, state: RunState, number: int) -> int:
    """What the validation and probe after this stage will cost, by what the last stage's cost; 0 before the first."""
    done = state.stages[number - 1].done if 0 < number <= len(state.stages) else None
    return done.validated.get(plan.unit, 0) // max(1, done.validations) if done else 0
