"""The result of a policy on one instance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mapf_frozenlake.evaluation.forms import Answer
from mapf_frozenlake.instance_set import InstanceSet
from mapf_frozenlake.judge import judge
from mapf_frozenlake.text import ParseError, parse_plan
from mapf_frozenlake.types import Instance, Plan


@dataclass(frozen=True)
class Record:
    """One instance, its answer, and the judge's verdict in short."""

    index: int  # in the suite
    sample_id: str | None
    agents: int
    size: int | str  # the side of a square lake, "height×width" of others
    hole_ratio: float
    wait_subset: float | None  # the wait ratio of its subset, if the suite has wait subsets
    needs_wait: bool | None
    answer: Answer  # reply, plan, or None if no plan was found
    plan: list[list[int]] | None  # None if no plan could be read
    parse_error: str | None
    valid: bool
    optimal: bool | None  # None if the least makespan is unknown
    failure: str | None
    makespan: int | None
    regret: int | None  # makespan over the least possible, of valid plans
    sum_of_costs: int | None
    least_makespan: int | None


def record_of(suite: InstanceSet, index: int, answer: Answer) -> Record:
    """Read and judge the answer to one instance."""
    instance = suite[index]
    plan = _plan(answer, instance)
    verdict = judge(instance, plan)
    return Record(
        index=index,
        sample_id=instance.sample_id,
        agents=instance.num_agents,
        size=instance.height if instance.height == instance.width else f"{instance.height}×{instance.width}",
        hole_ratio=_hole_ratio(suite, index, instance),
        wait_subset=_label(suite, "wait_subset", index),
        needs_wait=instance.needs_wait,
        answer=answer,
        plan=None if isinstance(plan, ParseError) else [list(actions) for actions in plan],
        parse_error=str(plan) if isinstance(plan, ParseError) else None,
        valid=verdict.valid,
        optimal=verdict.optimal,
        failure=None if verdict.failure is None else verdict.failure.value,
        makespan=verdict.makespan if verdict.valid else None,
        regret=verdict.makespan_gap,
        sum_of_costs=verdict.sum_of_costs if verdict.valid else None,
        least_makespan=instance.makespan,
    )


def _plan(answer: Answer, instance: Instance) -> Plan | ParseError:
    if answer is None:
        return [[] for _ in range(instance.num_agents)]
    return parse_plan(answer, instance.num_agents) if isinstance(answer, str) else answer


def _hole_ratio(suite: InstanceSet, index: int, instance: Instance) -> float:
    """The suite's label, or else the counted ratio with one digit."""
    label = _label(suite, "hole_ratio", index)
    if label is not None:
        return label
    free = instance.holes.size - 2 * instance.num_agents
    return round(float(np.count_nonzero(instance.holes)) / free, 1) if free else 0.0


def _label(suite: InstanceSet, name: str, index: int) -> float | None:
    return round(float(suite.labels[name][index]), 6) if name in suite.labels else None
