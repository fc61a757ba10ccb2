"""Plays a protocol's episodes and measures them as papers on path finding do."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.config import LakeConfig
from mapf_frozenlake.evaluation.forms import Form, batch_of, plan_by
from mapf_frozenlake.instance_set import InstanceSet
from mapf_frozenlake.judge import actions_by_step
from mapf_frozenlake.types import Action, Event
from mapf_frozenlake.world.batch import LakeBatch

Played = Form | Literal["planner"]  # the form of a policy, on a protocol


@runtime_checkable
class Planner(Protocol):
    """Acts on a batch with all that it knows, not only on observations."""

    def act_on(self, batch: LakeBatch) -> NDArray[np.int64]:
        """int64[n, A]: one action for each board and agent slot."""
        ...


@dataclass(frozen=True)
class PathEpisode:
    """What happened on one board. An agent that did not arrive costs the horizon."""

    map: str
    agents: int
    episode: int
    arrived: float  # share of agents on their goals in the end; lifelong: that reached a goal
    solved: bool  # all of them
    makespan: int | None  # steps until the last agent arrived; None in lifelong episodes
    sum_of_costs: int | None  # the sum over the agents of the step after which each stays on its goal
    throughput: float | None  # goals reached a step; None unless lifelong
    density: float  # agents over cells of ice
    collisions: int  # times that an agent wanted a cell that another stood on or wanted, or wanted to exchange cells
    seconds_per_step: float  # of the policy, by the clock


def ask_once(policy: Any, form: Played, boards: InstanceSet, config: LakeConfig) -> None:
    """For the first actions on the first board, without a clock: a first call may compile, or load what is compiled."""
    first = np.array([0])
    _actor(policy, form, boards[first], _begun(policy, boards[first], config, first))(1)


def measure(policy: Any, form: Played, boards: InstanceSet, config: LakeConfig, map_name: str) -> list[PathEpisode]:
    """Play all boards under the config's rules. A network plays all at once, a solver or planner one by one."""
    if form == "neural":
        return _measure(policy, form, boards, config, map_name, np.arange(len(boards)))
    alone = (np.array([row]) for row in range(len(boards)))
    return [one for row in alone for one in _measure(policy, form, boards[row], config, map_name, row)]


def _measure(
    policy: Any, form: Played, boards: InstanceSet, config: LakeConfig, map_name: str, seeds: NDArray[np.int64]
) -> list[PathEpisode]:
    batch = _begun(policy, boards, config, seeds)
    began = time.perf_counter()
    act = _actor(policy, form, boards, batch)
    planning = time.perf_counter() - began
    n, agents, horizon = len(boards), boards.starts.shape[1], int(batch.horizon[0])
    last_away = np.zeros((n, agents), np.int64)
    here, ever = np.zeros((n, agents), bool), np.zeros((n, agents), bool)
    goals, collisions, steps = np.zeros(n, np.int64), np.zeros(n, np.int64), np.full(n, horizon)
    running = np.ones(n, bool)
    for step in range(1, horizon + 1):
        began = time.perf_counter()
        actions = act(step)
        planning += time.perf_counter() - began
        batch.step(actions)
        reached = batch.reached & running[:, None]
        ever |= reached
        here[running] = (ever if config.on_goal == "finish" else reached)[running]
        last_away[running[:, None] & ~here] = step
        goals += reached.sum(axis=1)
        collisions += (np.isin(batch.events, (Event.VERTEX, Event.SWAP)) & running[:, None]).sum(axis=1)
        over = batch.finished
        steps[running & over] = step
        running &= ~over
        if not running.any():
            break
        if over.any():  # the batch wants them reset; what they do then does not count
            batch.reset(over, instances=boards[np.flatnonzero(over)])
    lifelong = config.on_goal == "next"
    arrived = ever if lifelong else here
    costs = np.where(arrived, last_away + 1, horizon)
    return [
        PathEpisode(
            map=map_name,
            agents=agents,
            episode=int(seeds[row]),
            arrived=float(arrived[row].mean()),
            solved=bool(arrived[row].all()),
            makespan=None if lifelong else int(costs[row].max()),
            sum_of_costs=None if lifelong else int(costs[row].sum()),
            throughput=float(goals[row] / horizon) if lifelong else None,
            density=agents / int((~boards[row].holes).sum()),
            collisions=int(collisions[row]),
            seconds_per_step=planning / int(steps.sum()),
        )
        for row in range(n)
    ]


def _begun(policy: Any, boards: InstanceSet, config: LakeConfig, seeds: NDArray[np.int64]) -> LakeBatch:
    """The boards at the start of their episodes."""
    batch = batch_of(boards, config, getattr(policy, "env_kwargs", {"observation": "compact"}), seeds)
    batch.reset(instances=boards)
    return batch


def _actor(policy: Any, form: Played, boards: InstanceSet, batch: LakeBatch) -> Callable[[int], NDArray[np.int64]]:
    """A function from the number of the coming step to the actions of all boards; a solver plans at once."""
    if form == "neural":
        return lambda step: np.asarray(policy.act(batch.observation), np.int64)
    if form == "planner":
        return lambda step: policy.act_on(batch)
    plans = []
    for board in boards:
        plan = plan_by(policy, board)
        plans.append(actions_by_step([[]] * board.num_agents if plan is None else plan, board.num_agents))

    def planned(step: int) -> NDArray[np.int64]:
        actions = np.full((len(plans), batch.max_agents), Action.WAIT, np.int64)
        for row, plan in enumerate(plans):
            if step <= len(plan):
                actions[row, : plan.shape[1]] = plan[step - 1]
        return actions

    return planned
