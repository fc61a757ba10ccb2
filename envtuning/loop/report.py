"""From what a stage left behind to the typed ``StageReport`` that an engineer reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, pstdev
from typing import Any

import numpy as np

from engineers.report import FailureCase, Incident, SliceResult, StageRecord, StageReport
from envtuning.loop.transitions import History
from envtuning.loop.validation import active_sizes
from envtuning.runs.folder import RunFolder, StageConfig
from envtuning.worlds.lakes.episodes import Episode, behaviour, by_size, pooled, slice_results
from mapf_frozenlake import LakeConfig, to_text
from mapf_frozenlake.feedback import explain
from mapf_frozenlake.instance_set import InstanceSet

ENVIRONMENT = (
    "A multi-agent FrozenLake: agents on a square grid of ice and holes move at once, one cell a step or not at all, each "
    "from its start to its own goal. Leaving the board, stepping into a hole, two agents on one cell and two agents "
    "exchanging cells are violations. An episode is valid when all agents stand on their goals at once and no violation "
    "happened; it is optimal when, besides, no plan could have taken fewer steps. Following an agent into the cell that it "
    "leaves in the same step is allowed; an agent on its goal stays on the board and blocks it."
)
CURVE_POINTS = 20


@dataclass
class StageOutcome:
    """What a finished stage hands to its report."""

    number: int
    chosen: StageConfig
    trained_on: LakeConfig
    episodes: list[Episode]  # of the closing validation
    probe: InstanceSet | None
    probe_episodes: list[Episode]
    history: History
    reason: str
    train_steps: int
    validation_steps: int
    incidents: list[Incident] = field(default_factory=list)


def build_report(run: RunFolder, suite: InstanceSet, outcome: StageOutcome) -> StageReport:
    """A pure function of the run's earlier files, the suite and the outcome."""
    spec = run.spec
    return StageReport(
        run=run.name,
        stage=outcome.number,
        environment=ENVIRONMENT,
        objective="valid_rate",
        config=outcome.trained_on.model_dump(mode="json"),
        results=slice_results(outcome.episodes),
        training_results=slice_results(outcome.probe_episodes),
        failure_cases=failure_cases(suite, outcome.episodes, spec.suites.failure_cases),
        behaviour=behaviour_per_size(suite, outcome.episodes),
        environment_stats=drawn(outcome.trained_on, outcome.probe) if outcome.probe is not None else {},
        history=earlier(run, outcome.number),
        training=bookkeeping(run, outcome),
        incidents=[*run.incidents(), *outcome.incidents],
    )


def failure_cases(suite: InstanceSet, episodes: Sequence[Episode], count: int) -> list[FailureCase]:
    """A few failures, sizes and kinds by turns, each drawn as a board with what went wrong."""
    queues: dict[tuple[int, str], list[Episode]] = {}
    for episode in episodes:
        if episode.failure is not None:
            queues.setdefault((episode.size, episode.failure), []).append(episode)
    picked: list[Episode] = []
    while len(picked) < count and any(queues.values()):
        picked += [queue.pop(0) for _, queue in sorted(queues.items()) if queue]
    cases = []
    for episode in picked[:count]:
        instance = suite[episode.case]
        cases.append(
            FailureCase(
                slice=str(episode.size),
                kind=str(episode.failure),
                picture=to_text(instance),
                explanation=episode.note or explain(instance, episode.plan),
                case_id=str(episode.case),
            )
        )
    return cases


def behaviour_per_size(suite: InstanceSet, episodes: Sequence[Episode]) -> dict[str, dict[str, float]]:
    """Means per episode."""
    found: dict[str, dict[str, float]] = {}
    for size, group in by_size(episodes).items():
        rows = [behaviour(suite[episode.case], episode) for episode in group]
        found[str(size)] = {name: round(fmean(row[name] for row in rows), 3) for name in rows[0]}
    return found


def drawn(config: LakeConfig, probe: InstanceSet) -> dict[str, dict[str, float]]:
    """What the generator really dealt, per size: shares, holes, waits, distances, least makespans."""
    stats = {}
    for size in active_sizes(config):
        boards = probe[np.flatnonzero(probe.heights == size)]
        if not len(boards):
            stats[str(size)] = {"share": 0.0}
            continue
        agents = boards.num_agents.astype(int)
        board_holes = [int(instance.holes.sum()) for instance in boards]
        distances = [np.abs(one.starts.astype(int) - one.goals).sum(axis=1).mean() for one in boards]
        row = {
            "share": len(boards) / len(probe),
            "hole_ratio": fmean(
                holes / max(1, size * size - 2 * n) for holes, n in zip(board_holes, agents, strict=True)
            ),
            "distance": fmean(distances),
            "agents": fmean(agents.tolist()),
        }
        if (boards.needs_wait >= 0).any():
            row["wait_ratio"] = float((boards.needs_wait[boards.needs_wait >= 0] == 1).mean())
        if (boards.makespan >= 0).any():
            row["least_makespan"] = float(boards.makespan[boards.makespan >= 0].mean())
        stats[str(size)] = {name: round(float(value), 3) for name, value in row.items()}
    return stats


def earlier(run: RunFolder, number: int) -> list[StageRecord]:
    """The stages before this one, oldest first."""
    records = []
    for stage in run.done_stages[:number]:
        report, chosen = stage.report, stage.config
        if report is None or chosen is None:
            continue
        numbers = {name: value for name, value in report.training.items() if isinstance(value, int | float)}
        records.append(
            StageRecord(
                stage=stage.number,
                config=report.config,
                results=report.results,
                engineer=chosen.engineer,
                training={name: float(value) for name, value in numbers.items()},
            )
        )
    return records


def bookkeeping(run: RunFolder, outcome: StageOutcome) -> dict[str, Any]:
    """Where the run stands, and how training went: numbers, and curves of at most ``CURVE_POINTS`` points."""
    iterations = outcome.history.iterations
    norms = [entry["grad_norm"] for entry in iterations if "grad_norm" in entry]
    details: dict[str, Any] = {
        "round": outcome.number,
        "rounds": len(run.spec.stages),
        "train_steps": outcome.train_steps,
        "validation_steps": outcome.validation_steps,
        "iterations": len(iterations),
        "why_it_ended": outcome.reason,
    }
    if norms:
        level = fmean(norms)
        details["grad_norm"] = round(level, 4)
        details["grad_norm_variation"] = round(pstdev(norms) / level, 3) if level else 0.0
    for name in ("success_rate", "grad_norm"):
        values = [entry[name] for entry in iterations if name in entry]
        if values:
            details[f"{name}_curve"] = [round(value, 4) for value in thinned(values, CURVE_POINTS)]
    if outcome.history.validations:
        details["valid_rate_curve"] = [round(entry["valid_rate"], 4) for entry in outcome.history.validations]
    return details


def thinned(values: Sequence[float], points: int) -> list[float]:
    """At most ``points`` values: means of equal stretches."""
    if len(values) <= points:
        return list(values)
    return [float(part.mean()) for part in np.array_split(np.asarray(values), points)]


def overall(results: Sequence[SliceResult]) -> dict[str, float]:
    """The table's rates over all its episodes."""
    return {name: pooled(results, name) for name in ("valid_rate", "optimal_rate")}
