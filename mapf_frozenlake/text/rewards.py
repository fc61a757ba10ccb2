"""The reward of a plan in one reply: the named rewards of the step-by-step world, for a plan without steps."""

from __future__ import annotations

from mapf_frozenlake.config import RewardName
from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.judge import play
from mapf_frozenlake.solvers import distance_fields
from mapf_frozenlake.text.errors import ParseError
from mapf_frozenlake.types import Event, Instance, Plan, Verdict


def plan_reward(name: RewardName, instance: Instance, plan: Plan | ParseError, verdict: Verdict) -> float:
    """Pays 1 for every valid plan under each name but ``shaped``, and 0 for what cannot be read.

    sparse    1 if the plan is valid
    progress  the share of agents that end on their goals without having made a violation
    legal     the share of agents that made no violation
    shaped    sparse, plus the mean share of way gained: (distance at the start - at the end) / (height + width)
    """
    if isinstance(plan, ParseError):
        return 0.0
    at_fault = {violation.agent for violation in verdict.violations}
    agents = range(instance.num_agents)
    if name == "sparse":
        return float(verdict.valid)
    if name == "progress":
        return sum(verdict.agents_on_goal[agent] and agent not in at_fault for agent in agents) / len(agents)
    if name == "legal":
        return sum(agent not in at_fault for agent in agents) / len(agents)
    if name == "shaped":
        return float(verdict.valid) + _way_gained(instance, plan)
    raise LakeError(f"reward={name!r}: a plan pays 'sparse', 'progress', 'legal' or 'shaped'")


def _way_gained(instance: Instance, plan: Plan) -> float:
    """Mean over agents; a hole has no distance, so who fell counts from where it stood before."""
    playback = play(instance, plan)
    gained = 0
    for agent, distance in enumerate(distance_fields(instance)):
        fell = len(playback.events) > 0 and playback.events[-1, agent] == Event.HOLE
        end = playback.positions[-2 if fell else -1, agent]
        gained += int(distance[tuple(instance.starts[agent])]) - int(distance[tuple(end)])
    return gained / instance.num_agents / (instance.height + instance.width)
