"""``augment``: the lake's feedback as middleware. It takes an event and returns advice, or None.

Tool use takes functions of the same signature (``envtuning.worlds.bfcl.events``). To write other hints, write such a function and
pass it to ``MAPFFrozenLakeText-v0`` as ``augmenter=``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.feedback import explain, explain_step
from mapf_frozenlake.text.errors import ParseError
from mapf_frozenlake.types import Cells, Instance, Plan, Verdict


@dataclass(frozen=True)
class PlanEvent:
    """A whole plan was judged."""

    action: str  # the raw reply
    result: str  # the message without feedback
    error: bool  # whether the plan is not valid
    instance: Instance
    plan: Plan | ParseError
    verdict: Verdict


@dataclass(frozen=True)
class TurnEvent:
    """One step was taken."""

    action: str
    result: str
    error: bool  # whether the reply could not be read, or some agent did not get its chosen move
    instance: Instance
    before: Cells  # the agents' positions before the step
    goals: Cells  # their goals before the step
    moves: NDArray[np.int64] | ParseError  # int64[num_agents]; WAIT for every agent if the reply could not be read
    events: NDArray[np.int8]  # int8[num_agents], ``Event`` values


LakeEvent = PlanEvent | TurnEvent
LakeAugmenter = Callable[[LakeEvent], str | None]


def augment(event: LakeEvent) -> str | None:
    """One or two sentences for each fault: agent, cell, cause, and the moves that were possible. Also reports a plan's success."""
    if isinstance(event, PlanEvent):
        return explain(event.instance, event.plan, event.verdict)
    if isinstance(event.moves, ParseError):
        return f"No moves could be read from the reply, so everybody waited: {event.moves}."
    instance = event.instance
    return "\n".join(explain_step(instance.holes, event.goals, event.before, event.moves, event.events)) or None
