"""``augment``: the lake's feedback as middleware. It takes an event and returns advice, or None.

The signature is that of every world's feedback (``envtuning.worlds.feedback``): to write other hints, write such a function and
gives it to ``MAPFFrozenLakeText-v0`` as ``augmenter=``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.feedback import explain, explain_step
from mapf_frozenlake.text.errors import ParseError
from mapf_frozenlake.types import Cells, Event, Instance, Plan, Verdict


@dataclass(frozen=True)
class PlanEvent:
    """A whole plan was judged."""

    action: str  # the reply, as it was written
    result: str  # what is said of it without feedback
    error: bool  # whether the plan is not valid
    instance: Instance
    plan: Plan | ParseError
    verdict: Verdict


@dataclass(frozen=True)
class TurnEvent:
    """One step was taken."""

    action: str
    result: str
    error: bool  # whether the reply could not be read, or some agent's move did not go as it wanted
    instance: Instance
    before: Cells  # where the agents stood
    moves: NDArray[np.int64] | ParseError  # int64[num_agents]; every agent waited where none could be read
    events: NDArray[np.int8]  # int8[num_agents], ``Event`` values


LakeEvent = PlanEvent | TurnEvent
LakeAugmenter = Callable[[LakeEvent], str | None]


def turn_event(
    action: str,
    result: str,
    instance: Instance,
    before: Cells,
    moves: NDArray[np.int64] | ParseError,
    events: NDArray[np.int8],
) -> TurnEvent:
    """The event of a step, which says whether something went wrong."""
    error = isinstance(moves, ParseError) or bool((events != Event.NONE).any())
    return TurnEvent(action, result, error, instance, before, moves, events)


def augment(event: LakeEvent) -> str | None:
    """A sentence or two for each fault: agent, cell, cause, and what would have been possible. A plan's success is reported, too."""
    if isinstance(event, PlanEvent):
        return explain(event.instance, event.plan, event.verdict)
    if isinstance(event.moves, ParseError):
        return f"No moves could be read from the reply, so everybody waited: {event.moves}."
    instance = event.instance
    return "\n".join(explain_step(instance.holes, instance.goals, event.before, event.moves, event.events)) or None
