"""Reports with the same totals and different causes: half of the boards fail, and only what fails on which boards says why.

Nothing here was measured; the reports are made up around a real one, so that an engineer that reads totals, or has a habit, cannot
tell them apart.
"""

from __future__ import annotations

from typing import Any

from engineers.report import SliceResult, StageReport

EPISODES = 40  # of every slice
SLICES = ("3", "4", "5", "6")
SMALL = ("3", "4")
KIND = {"waits": "conflict", "agents": "conflict", "holes": "hole", "boards": "goal_missed"}
# What a cause shows in a slice's behaviour: success where it is there, and where it is not.
MARK = {"waits": ("valid_where_a_wait_is_needed", "valid_where_no_wait_is_needed"), "agents": ("valid_with_3_agents", "valid_with_2_agents")}  # fmt: skip
EVEN = {name: 0.5 for pair in MARK.values() for name in pair} | {"valid_where_goals_are_near": 0.5, "valid_where_goals_are_far": 0.5}  # fmt: skip
OTHER_KINDS = ("goal_missed", "conflict", "hole")


def report_of(cause: str, base: StageReport) -> StageReport:
    """The base with its evidence replaced: 80 of 160 boards fail, by this cause alone."""
    failing = {name: (0 if name in SMALL else EPISODES) if cause == "boards" else EPISODES // 2 for name in SLICES}
    results = [_result(name, failed, KIND[cause]) for name, failed in failing.items()]
    behaviour = {
        name: dict(EVEN) if cause != "boards" else _level(1.0 - failed / EPISODES) for name, failed in failing.items()
    }
    for marks in behaviour.values():
        marks |= _marked(cause)
    return base.model_copy(
        update={
            "results": results,
            "behaviour": behaviour,
            "training_results": [_result(name, 2, "goal_missed") for name in SLICES],
            "failure_cases": [],
            "environment_stats": {},
            "incidents": [],
        }
    )


def falsified(report: StageReport) -> StageReport:
    """One number is a lie: the largest slice's success is said to be 1, against its failures and all else."""
    results = [result.model_copy(deep=True) for result in report.results]
    results[-1].metrics["valid_rate"] = 1.0
    return report.model_copy(update={"results": results})


def _result(name: str, failed: int, kind: str) -> SliceResult:
    rate = 1 - failed / EPISODES
    return SliceResult(
        name=name,
        episodes=EPISODES,
        metrics={"valid_rate": rate, "optimal_rate": rate / 2, "legal_rate": 1.0 if kind == "goal_missed" else rate},
        failures={kind: failed} if failed else {},
    )


def _level(rate: float) -> dict[str, float]:
    return dict.fromkeys(EVEN, rate)


def _marked(cause: str) -> dict[str, Any]:
    return {} if cause not in MARK else dict(zip(MARK[cause], (0.0, 1.0), strict=True))
