"""``reader`` and the default engineer against even draws on four arithmetic tasks: ``python -m benchmarks.newcomer``, no test before the end.

All four tasks can be learnt, so there is nothing to give up. ``reader`` had given up learnable tasks here after two stages. Its floor
was chosen on seeds 0 to 9 of these tasks; the stored seeds had no part in it. The stored figures are of ``reader`` alone, which was the default.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._command import arguments_of, command, record_if_asked
from engineers.registry import DEFAULT_ENGINEER
from engineers.shared import own
from envtuning.runs.log import RunLog
from envtuning.runs.spec import RunSpec
from envtuning.studies.closed_loop import lower_bound
from envtuning.studies.compare import compare
from envtuning.studies.intervals import t_mean
from envtuning.worlds.text_world import Task, TaskKnobs, TextWorld

EVEN = "fixed"
ENGINEERS = ("reader", DEFAULT_ENGINEER)
SEEDS = range(10, 20)
STAGES, BUDGET = 6, 12_000
GIVEN_UP = 0.05  # of the data: a task with less, and never more again, was given up
RUNS = Path(__file__).parents[1] / "runs" / "newcomer"


class Knobs(TaskKnobs):
    """A share alone."""


def add(rng: np.random.Generator, knobs: Knobs) -> tuple[str, str]:
    one, other = int(rng.integers(90)), int(rng.integers(10))
    return f"add {one} {other}", str(one + other)


def subtract(rng: np.random.Generator, knobs: Knobs) -> tuple[str, str]:
    one, other = int(rng.integers(10, 100)), int(rng.integers(10))
    return f"subtract {one} {other}", str(one - other)


def larger(rng: np.random.Generator, knobs: Knobs) -> tuple[str, str]:
    one, other = rng.integers(100, size=2).tolist()
    return f"larger {one} {other}", str(max(one, other))


def double(rng: np.random.Generator, knobs: Knobs) -> tuple[str, str]:
    number = int(rng.integers(1000))
    return f"double {number}", str(2 * number)


TASKS = {"add": add, "subtract": subtract, "larger": larger, "double": double}
world = TextWorld(
    "arithmetic",
    {name: Task(Knobs, make) for name, make in TASKS.items()},
    "Four arithmetic tasks. The reply is the number.",
)


def spec() -> RunSpec:
    config = {"tasks": {name: {} for name in TASKS}}
    return RunSpec.model_validate(
        {
            "name": "newcomer",
            "world": "benchmarks.newcomer:world",
            "target": config,
            "stages": [{"config": config, "budget": BUDGET}, *[{"budget": BUDGET}] * (STAGES - 1)],
            "trainee": {"kind": "lm"},
            "editable": ["tasks.*.share"],
            "suites": {"validation_per_slice": 30, "test_per_slice": 40, "validate": "last"},
            "guard": {"max_drop": None},
        }
    )


def given_up(run: RunLog) -> list[str]:
    """The tasks that the last stage and the one before gave next to nothing."""
    shares = [run.plan.world.slices(stage.chosen.config) for stage in run.state.stages[-2:]]
    return [name for name in TASKS if all(share.get(name, 0.0) < GIVEN_UP for share in shares)]


def over_even(ends: Sequence[float], even: Sequence[float]) -> dict[str, float]:
    """The mean difference to even draws in points, by seed, with its interval, its one-sided bound and the worst seed."""
    over = [100 * (ours - theirs) for ours, theirs in zip(ends, even, strict=True)]
    return asdict(t_mean(over)) | {"bound": lower_bound(over), "worst": min(over)}


def main() -> None:
    arguments = arguments_of(command(__doc__ or ""))
    own.trust(["benchmarks.newcomer"])  # this file, which the spec names
    compared = compare(spec(), (EVEN, *ENGINEERS), SEEDS, RUNS)
    ends = {name: [one.success for one in compared.runs if one.arm == name] for name in (EVEN, *ENGINEERS)}
    without = {name: {seed: given_up(RunLog.open(RUNS / name / f"seed{seed}")) for seed in SEEDS} for name in ENGINEERS}
    figures: dict[str, Any] = {
        "seeds": list(SEEDS),
        "ends": ends,
        "over_even": {name: over_even(ends[name], ends[EVEN]) for name in ENGINEERS},
        "given_up": {
            seed: [f"{task} by {name}" for name in ENGINEERS for task in without[name][seed]] for seed in SEEDS
        },
        "tests": {row.arm: row.tests for row in compared.rows},
    }
    print(figures)
    record_if_asked(arguments, "newcomer", figures)


if __name__ == "__main__":
    main()
