"""The rewards of a step: each named reward is an entry of ``REWARDS``; a user's function gets a ``Transition``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.types import Event
from mapf_frozenlake.world.jit import subkernel
from mapf_frozenlake.world.state import NOWHERE, WAIT

_NONE, _BLOCKED, _FELL = int(Event.NONE), int(Event.BLOCKED), int(Event.HOLE)


@dataclass(frozen=True)
class Transition:
    """One step of n envs, for a user's reward function. The arrays belong to the batch: read them, do not keep or change them."""

    before: NDArray[np.int16]  # [n, A, 2]: row, col before the step
    positions: NDArray[np.int16]  # [n, A, 2]: after it
    goals: NDArray[np.int16]  # [n, A, 2]: after it; under on_goal="next", an agent that reached its goal has a new one
    reached: NDArray[np.bool_]  # [n, A]: the agent reached its goal in this step (under on_goal="wait": is on it)
    actions: NDArray[np.int64]  # [n, A]: as chosen, before slips
    events: NDArray[np.int8]  # [n, A]: Event codes
    active: NDArray[np.bool_]  # [n, A]: False in empty slots, and for agents that had left the board before the step
    stepped: NDArray[np.bool_]  # [n]: False if this call only reset the env
    success: NDArray[np.bool_]  # [n]
    step: NDArray[np.int32]  # [n]: steps taken, this one included
    horizon: NDArray[np.int32]  # [n]


RewardFunction = Callable[[Transition], NDArray[np.float64]]  # -> [n, A]


class PlayedPlan(NamedTuple):
    """A plan from one reply, after it was played to its end."""

    valid: bool
    arrived: NDArray[np.bool_]  # [A]: ends on its goal
    lawful: NDArray[np.bool_]  # [A]: made no violation
    way_gained: Callable[[], float]  # mean over agents: (distance at the start - at the end) / (height + width)


class Reward(NamedTuple):
    """One named reward: ``kernel`` pays steps; ``of_plan`` pays a plan in one reply, which has no steps."""

    description: str  # for the config's schema
    pay: Any  # kernel (state, e, success): writes the reward of every agent of env e, and returns the mean
    of_plan: Callable[[PlayedPlan], float] | None = None  # None: text environments do not pay it for whole plans
    needs_distance: bool = False  # the kernel reads state.distance


@subkernel
def _pay_all(state, e, amount):
    for i in range(state.episode[e].num_agents):
        state.rewards[e, i] = amount
    return amount


@subkernel
def _pay_success(state, e, success):
    waits, total = state.episode[e].on_goal == WAIT, 0.0
    for i in range(state.episode[e].num_agents):
        paid = 1.0 if (success if waits else state.records[e, i].reached) else 0.0
        state.rewards[e, i] = paid
        total += paid
    return total / state.episode[e].num_agents


@subkernel
def _pay_progress(state, e, success):
    """The share of agents on their goals, nearer than before or already gone, times the share without a violation."""
    count = state.episode[e].num_agents
    closer = 0
    for i in range(count):
        now = state.distance[e, i, state.cells[e, i]]
        if now == 0 or now < state.distance[e, i, state.before[e, i]] or state.cells[e, i] == NOWHERE:
            closer += 1
    return _pay_all(state, e, _over_the_horizon(state, e, _share_lawful(state, e) * (closer / count), success))


@subkernel
def _pay_legal(state, e, success):
    return _pay_all(state, e, _over_the_horizon(state, e, _share_lawful(state, e), success))


@subkernel
def _share_lawful(state, e):
    """Share of agents without a violation."""
    count = state.episode[e].num_agents
    lawful = 0
    for i in range(count):
        event = state.events[e, i]
        if event in (_NONE, _BLOCKED):
            lawful += 1
    return lawful / count


@subkernel
def _over_the_horizon(state, e, share, success):
    """A step's part of 1; on success, the remaining steps are paid at once."""
    episode = state.episode[e]
    horizon = np.float64(episode.horizon)
    amount = share / horizon
    if success:
        amount += (horizon - np.float64(episode.step)) / horizon
    return amount


@subkernel
def _pay_way_gained(state, e, success):
    """Potential −distance / (height + width): an episode's sum is its sparse reward plus the gained share of the distance."""
    episode = state.episode[e]
    scale = np.float64(episode.height + episode.width)
    total = 0.0
    for i in range(episode.num_agents):
        gained = 0.0
        if state.events[e, i] != _FELL:  # a hole has no distance, so an agent that fell keeps its potential
            was = state.distance[e, i, state.before[e, i]]
            now = state.distance[e, i, state.cells[e, i]]
            gained = np.float64(np.int32(was) - np.int32(now)) / scale
        bonus = success if episode.on_goal == WAIT else state.records[e, i].reached
        state.rewards[e, i] = gained + (1.0 if bonus else 0.0)
        total += state.rewards[e, i]
    return total / episode.num_agents


# A new reward is one entry here and one kernel above.
REWARDS: dict[str, Reward] = {
    "sparse": Reward(
        "1 on success; for each goal reached where agents leave or get new goals",
        _pay_success,
        lambda plan: float(plan.valid),
    ),
    "progress": Reward(
        "a part of 1 for each step nearer to the goals",
        _pay_progress,
        lambda plan: float((plan.arrived & plan.lawful).mean()),
        needs_distance=True,
    ),
    "shaped": Reward(
        "by the change in distance",
        _pay_way_gained,
        lambda plan: plan.valid + plan.way_gained(),
        needs_distance=True,
    ),
    "legal": Reward("for steps without a violation", _pay_legal, lambda plan: float(plan.lawful.mean())),
}


@subkernel
def _pay_nothing(state, e, success):
    return _pay_all(state, e, 0.0)


def _if_named(code: int, named: Any, others: Any) -> Any:
    """One kernel for a reward and all after it, because numba cannot call functions from an array."""

    @subkernel
    def pay(state, e, success):
        if state.episode[e].reward == code:
            return named(state, e, success)
        return others(state, e, success)

    return pay


_pay_named = _pay_nothing
for _code, _reward in reversed(list(enumerate(REWARDS.values()))):
    _pay_named = _if_named(_code, _reward.pay, _pay_named)


@subkernel
def pay(state, e, success):
    """Write the named reward of env ``e``'s last step and the team's mean."""
    episode = state.episode[e]
    for slot in range(episode.num_agents, state.rewards.shape[1]):  # the last episode may have had more agents
        state.rewards[e, slot] = 0.0
    episode.team = _pay_named(state, e, success)


def team_means(paid: NDArray[np.float64], active: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The mean over each env's agents, without empty slots: float64[n]."""
    return paid.sum(axis=1) / active.sum(axis=1)
