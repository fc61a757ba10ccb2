"""The next task of a run. It depends only on the run's plan and state, so resuming needs nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from envtuning.runs.plan import Plan
from envtuning.runs.state import RunState


@dataclass(frozen=True)
class Choose:
    """Choose the stage's config. If the engineer writes it, ask the engineer."""

    stage: int


@dataclass(frozen=True)
class Train:
    """Train the stage from the previous checkpoint, validate it and write its report."""

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
    """Whether the run has this stage: it is listed, or it repeats the last stage and has budget left to train."""
    spec = plan.spec
    if number < len(spec.stages):
        return True
    return spec.total is not None and spec.total - state.spent.get(plan.unit, 0) > closing_cost(plan, state, number)


def closing_cost(plan: Plan, state: RunState, number: int) -> int:
    """The expected cost of the validation and probe after this stage: that of the last stage that trained, or else of the last one; 0 for
    the first."""
    done = [stage.done for stage in state.stages[:number] if stage.done is not None]
    last = next((one for one in reversed(done) if one.trained), done[-1] if done else None)
    return last.validated.get(plan.unit, 0) // max(1, last.validations) if last else 0
