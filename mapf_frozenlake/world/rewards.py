"""What a step pays. Named rewards are computed in the kernel; a callable gets a ``Transition`` and pays what it likes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.config import RewardName
from mapf_frozenlake.types import Event
from mapf_frozenlake.world.jit import part

NAMES: tuple[str, ...] = get_args(RewardName)
SPARSE, PROGRESS, SHAPED, LEGAL = (NAMES.index(name) for name in ("sparse", "progress", "shaped", "legal"))
NEEDS_DISTANCE = frozenset({"progress", "shaped"})

_NONE, _BLOCKED, _FELL = int(Event.NONE), int(Event.BLOCKED), int(Event.HOLE)


@dataclass(frozen=True)
class Transition:
    """One step of n envs, for rewards of one's own. The arrays are the batch's: read them, do not keep or change them."""

    before: NDArray[np.int16]  # [n, A, 2]: row, col before the step
    positions: NDArray[np.int16]  # [n, A, 2]: after it
    goals: NDArray[np.int16]  # [n, A, 2]
    actions: NDArray[np.int64]  # [n, A]: as asked for
    events: NDArray[np.int8]  # [n, A]: Event codes
    active: NDArray[np.bool_]  # [n, A]: False in empty slots
    stepped: NDArray[np.bool_]  # [n]: False where this call only reset the env
    success: NDArray[np.bool_]  # [n]
    step: NDArray[np.int32]  # [n]: steps taken, this one included
    horizon: NDArray[np.int32]  # [n]


RewardFunction = Callable[[Transition], NDArray[np.float64]]  # -> [n, A]


@part
def pay(state, e, success):
    """Write the named reward of env ``e``'s last step, and the team's mean of it."""
    episode = state.episode[e]
    for slot in range(episode.num_agents, state.rewards.shape[1]):  # the last episode's crowd may have been larger
        state.rewards[e, slot] = 0.0
    if episode.reward == SHAPED:
        _pay_each_its_way(state, e, success)
        return
    amount = 0.0
    if episode.reward == SPARSE:
        amount = 1.0 if success else 0.0
    else:
        horizon = np.float64(episode.horizon)
        amount = _share_in_order(state, e, episode.reward == PROGRESS) / horizon
        if success:  # the steps that are left are paid at once
            amount += (horizon - np.float64(episode.step)) / horizon
    for i in range(episode.num_agents):
        state.rewards[e, i] = amount
    episode.team = amount


@part
def _share_in_order(state, e, towards_goals):
    """Share of agents without a violation, times, for progress, the share on their goals or nearer than before."""
    count = state.episode[e].num_agents
    lawful, closer = 0, 0
    for i in range(count):
        event = state.events[e, i]
        if event in (_NONE, _BLOCKED):
            lawful += 1
        if towards_goals:
            now = state.distance[e, i, state.cells[e, i]]
            if now == 0 or now < state.distance[e, i, state.before[e, i]]:
                closer += 1
        else:
            closer += 1
    return (lawful / count) * (closer / count)


@part
def _pay_each_its_way(state, e, success):
    """Potential −distance / (height + width): an episode's sum is its sparse reward plus the share of way gained."""
    episode = state.episode[e]
    scale = np.float64(episode.height + episode.width)
    total = 0.0
    for i in range(episode.num_agents):
        gained = 0.0
        if state.events[e, i] != _FELL:  # a hole has no distance: who fell keeps its potential
            was = state.distance[e, i, state.before[e, i]]
            now = state.distance[e, i, state.cells[e, i]]
            gained = np.float64(np.int32(was) - np.int32(now)) / scale
        state.rewards[e, i] = gained + (1.0 if success else 0.0)
        total += state.rewards[e, i]
    episode.team = total / episode.num_agents


def team_means(paid: NDArray[np.float64], active: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Per env the mean over the agents that take part: float64[n]."""
    return paid.sum(axis=1) / active.sum(axis=1)
