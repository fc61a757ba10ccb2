"""Reports with the same totals and different causes: half of the boards fail, and only the failures of each kind of board show why.

These figures were not measured. The reports are made up around a real one, so that an engineer that reads only totals, or has a
habit, cannot distinguish them.
"""

from __future__ import annotations

from engineers.report import SliceResult, Split, StageReport

EPISODES = 40  # of every slice
SLICES = ("3", "4", "5", "6")
SMALL = ("3", "4")
KIND = {"waits": "conflict", "agents": "conflict", "holes": "hole", "boards": "goal_missed"}
# Engineers without a model were written with the first two causes only, and tested once on the others. The same holds for the trees of
# policies that lack one thing, whose diagnoses have these names: no report of a held-out one was read while `reader` was written; one change after
# their first measurement changed no answer.
DEVELOPMENT, HELD_OUT = ("waits", "boards"), ("holes", "agents")
# What a cause shows in the parts of a slice's episodes: that where it is there, and that where it is not.
MARK = {"waits": ("a_wait_is_needed", "no_wait_is_needed"), "agents": ("3_agents", "2_agents")}
PARTS = (*MARK["waits"], *MARK["agents"], "goals_are_near", "goals_are_far")
OTHER_KINDS = ("goal_missed", "conflict", "hole")


def report_of(cause: str, base: StageReport) -> StageReport:
    """The base with its evidence replaced: 80 of 160 boards fail, by this cause alone."""
    failing = {name: (0 if name in SMALL else EPISODES) if cause == "boards" else EPISODES // 2 for name in SLICES}
    results = [_result(name, failed, KIND[cause]) for name, failed in failing.items()]
    splits = {name: _level(1.0 - failed / EPISODES) | _marked(cause) for name, failed in failing.items()}
    return base.model_copy(
        update={
            "results": results,
            "behaviour": {},
            "splits": splits,
            "training_results": [_result(name, 2, "goal_missed") for name in SLICES],
            "failure_cases": [],
            "environment_stats": {},
            "incidents": [],
        }
    )


def falsified(report: StageReport) -> StageReport:
    """A false number: the largest slice's success is reported as 1, against its failures and all other numbers."""
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


def _level(rate: float) -> dict[str, Split]:
    """Each part is half of the episodes, and succeeds like the whole."""
    return {name: Split(episodes=EPISODES // 2, succeeded=round(rate * EPISODES / 2)) for name in PARTS}


def _marked(cause: str) -> dict[str, Split]:
    parts = MARK.get(cause, ())
    return {
        name: Split(episodes=EPISODES // 2, succeeded=won) for name, won in zip(parts, (0, EPISODES // 2), strict=False)
    }
