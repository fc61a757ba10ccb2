"""Playing a policy on a suite: ``mapf_frozenlake.evaluate`` asks and judges, and what is kept of it are episodes."""

from __future__ import annotations

from typing import Any

from envtuning.worlds.lakes.episodes import Episode, letters
from mapf_frozenlake import LakeConfig, evaluate
from mapf_frozenlake.evaluation import Record
from mapf_frozenlake.instance_set import InstanceSet


def play(policy: Any, suite: InstanceSet, config: LakeConfig) -> list[Episode]:
    """One episode per board, in the suite's order, under the config's rules; any form of policy that ``evaluate`` takes."""
    table = evaluate(policy, suite, name="trainee", config=config)
    return [_episode(record, int(suite.heights[record.index]), config) for record in table.per_instance]


def _episode(record: Record, size: int, config: LakeConfig) -> Episode:
    return Episode(
        case=record.index,
        size=size,
        moves=letters(record.plan or []),
        steps=_steps(record, size, config),
        valid=record.valid,
        optimal=record.optimal,
        failure=record.failure,
        makespan=record.makespan,
        gap=record.regret,
        note=record.parse_error,
    )


def _steps(record: Record, size: int, config: LakeConfig) -> int:
    """Env steps that the episode is charged: until success, else as long as the plan is; within 1 and the horizon."""
    length = max((len(line) for line in record.plan or []), default=0)
    if record.makespan is not None:
        length = min(length, record.makespan)
    return min(max(1, length), config.horizon_for(size, size))
