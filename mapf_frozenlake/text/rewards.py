"""The reward of a plan in one reply, by the named rewards of the step-by-step world."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.judge import play
from mapf_frozenlake.solvers import distance_fields
from mapf_frozenlake.text.errors import ParseError
from mapf_frozenlake.types import Event, Instance, Plan, Verdict
from mapf_frozenlake.world.rewards import REWARDS, PlayedPlan


def plan_reward(name: str, instance: Instance, plan: Plan | ParseError, verdict: Verdict) -> float:
    """The reward ``REWARDS[name].of_plan``: 1 for a valid plan, except under ``shaped``; 0 for a reply that cannot be read.

    sparse    1 if the plan is valid
    progress  the share of agents that end on their goals without having made a violation
    legal     the share of agents that made no violation
    shaped    sparse, plus the mean gain in distance: (distance at the start - at the end) / (height + width)
    """
    of_plan = payment_of_plans(name)
    if isinstance(plan, ParseError):
        return 0.0
    lawful = np.ones(instance.num_agents, np.bool_)
    lawful[[violation.agent for violation in verdict.violations]] = False
    arrived = np.array(verdict.agents_on_goal, np.bool_)
    return of_plan(PlayedPlan(verdict.valid, arrived, lawful, lambda: _way_gained(instance, plan)))


def payment_of_plans(name: str) -> Callable[[PlayedPlan], float]:
    """The function that pays a plan by this reward. Raises ``LakeError`` if the reward pays only steps."""
    of_plan = REWARDS[name].of_plan if name in REWARDS else None
    if of_plan is None:
        paid = ", ".join(repr(known) for known, reward in REWARDS.items() if reward.of_plan is not None)
        raise LakeError(f"reward={name!r}: a plan in one reply is paid by one of {paid}")
    return of_plan


def _way_gained(instance: Instance, plan: Plan) -> float:
    """Mean over agents; a hole has no distance, so an agent that fell counts from its cell before the fall."""
    playback = play(instance, plan)
    gained = 0
    for agent, distance in enumerate(distance_fields(instance)):
        fell = len(playback.events) > 0 and playback.events[-1, agent] == Event.HOLE
        end = playback.positions[-2 if fell else -1, agent]
        gained += int(distance[tuple(instance.starts[agent])]) - int(distance[tuple(end)])
    return gained / instance.num_agents / (instance.height + instance.width)
