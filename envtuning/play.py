"""Playing a policy on held-out boards. Whatever its form, what it did is a plan per board, and the judge says what it is worth."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from envtuning.episodes import Episode, letters
from mapf_frozenlake import LakeConfig, Plan
from mapf_frozenlake.instance_set import InstanceSet
from mapf_frozenlake.judge import judge
from mapf_frozenlake.types import Instance, Solution, Verdict
from mapf_frozenlake.world.batch import LakeBatch

AT_ONCE = 1024  # boards in one batch


def play(policy: Any, suite: InstanceSet, *, config: LakeConfig, seed: int) -> list[Episode]:
    """One episode per board of the suite under the config's rules, in the suite's order.

    A policy is a network's (``act(observation)`` and ``env_kwargs``) or a callable from an instance to a plan.
    """
    if hasattr(policy, "act"):
        plans = [
            plan
            for begin in range(0, len(suite), AT_ONCE)
            for plan in _acted(policy, suite[begin : begin + AT_ONCE], config, seed)
        ]
    else:
        plans = [_planned(policy, instance) for instance in suite]
    return [_episode(case, suite[case], plan, config) for case, plan in enumerate(plans)]


def _planned(policy: Any, instance: Instance) -> Plan:
    answer = policy(instance)
    return (answer.plan or ()) if isinstance(answer, Solution) else answer


def _acted(policy: Any, boards: InstanceSet, config: LakeConfig, seed: int) -> list[Plan]:
    """The actions a network takes, each episode until its end or horizon."""
    count = len(boards)
    batch = LakeBatch(config, count, autoreset="disabled", **policy.env_kwargs)
    batch.seed(seed + np.arange(count))
    observation = batch.reset(instances=boards)
    taken: list[NDArray[np.int64]] = []  # per step, int64[count, max_agents]
    lengths = np.zeros(count, np.int64)  # 0 while the episode goes on
    while not lengths.all():
        actions = policy.act(observation)
        taken.append(actions)
        result = batch.step(actions)
        over = result.terminated | result.truncated
        lengths[over & (lengths == 0)] = len(taken)
        observation = result.observation
        if (
            over.any() and not lengths.all()
        ):  # the batch wants its finished boards begun anew; nobody looks at them again
            observation = batch.reset(over, instances=boards[np.flatnonzero(over)])
    moves = np.stack(taken)  # int64[steps, count, max_agents]
    return [moves[: lengths[board], board, : boards.num_agents[board]].T.tolist() for board in range(count)]


def _episode(case: int, instance: Instance, plan: Plan, config: LakeConfig) -> Episode:
    verdict = judge(instance, plan)
    return Episode(
        case=case,
        size=instance.height,
        moves=letters(plan),
        steps=_steps(instance, plan, verdict, config),
        valid=verdict.valid,
        optimal=verdict.optimal,
        failure=None if verdict.failure is None else str(verdict.failure),
        makespan=verdict.makespan,
        gap=verdict.makespan_gap,
    )


def _steps(instance: Instance, plan: Plan, verdict: Verdict, config: LakeConfig) -> int:
    """Env steps that the episode is charged: until success, or as long as the plan is."""
    length = max((len(line) for line in plan), default=0)
    if verdict.valid and verdict.makespan is not None:
        length = min(length, verdict.makespan)
    return min(max(1, length), config.horizon_for(instance.height, instance.width))
