"""Specs of runs in ``counting_world``."""

from __future__ import annotations

from envtuning.runs.spec import RunSpec
from tests.envtuning.counting_world import CountConfig

VALIDATED, PROBED, TESTED = 10, 3, 5  # cases; a case is 7 steps: 70, 21, 35


def spec_of(*stages: dict, validate_every: int | None = None, **changes: object) -> RunSpec:
    plans = [{"budget": 1000, "config": CountConfig() if number == 0 else "engineer"} for number in range(len(stages))]
    return RunSpec.model_validate(
        {
            "world": "tests.envtuning.counting_world:CountWorld",
            "trainee": {"kind": "tests.envtuning.counting_world:CountTrainee"},
            "target": CountConfig(),
            "engineer": {"name": "fixed"},
            "stages": [plan | stage for plan, stage in zip(plans, stages, strict=True)],
            "suites": {
                "validation_per_slice": VALIDATED,
                "test_per_slice": TESTED,
                "probe_per_slice": PROBED,
                "validate": "stages" if validate_every is None else f"every {validate_every}",
            },
        }
        | changes
    )
