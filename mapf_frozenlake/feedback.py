"""Actionable feedback: what went wrong, where, why, and which moves were possible."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.judge import as_cell, judge, play, violations_of_step
from mapf_frozenlake.solvers import distance_fields
from mapf_frozenlake.text.errors import ParseError
from mapf_frozenlake.types import DELTAS, Action, BoolGrid, Cells, Event, Instance, Plan, Verdict, Violation
from mapf_frozenlake.world.move import joint_move

MOST_VIOLATIONS = 3  # explained one by one; later violations are mostly their consequences
_MOVES = tuple(action for action in Action if action is not Action.WAIT)


def explain(
    instance: Instance, plan: Plan | ParseError, verdict: Verdict | None = None, *, most: int = MOST_VIOLATIONS
) -> str:
    """Explains each of a plan's violations in one or two sentences: agent, cell, cause, and the moves that were possible.

    The first ``most`` violations are explained, the rest are counted. Pass ``verdict`` to avoid judging again.
    """
    if isinstance(plan, ParseError):
        return f"No plan could be read from the reply: {plan}."
    verdict = verdict if verdict is not None else judge(instance, plan)
    if verdict.valid:
        return _praise(verdict)
    if not verdict.violations:
        return "\n".join(_goals_missed(instance, plan))
    playback = play(instance, plan)
    sentences = []
    for fault in verdict.violations[:most]:
        step = _Step(instance.holes, instance.goals, playback.positions[fault.step], playback.actions[fault.step])
        sentences.append(f"Move {fault.step + 1}: {step.explain(fault)}")
    rest = len(verdict.violations) - len(sentences)
    if rest:
        sentences.append(f"{rest} more violation{'s' if rest > 1 else ''} followed.")
    return "\n".join(sentences)


def explain_step(
    holes: BoolGrid, goals: Cells, before: Cells, actions: NDArray[np.int64], events: NDArray[np.int8]
) -> list[str]:
    """A sentence for each agent that did not get its move, on a board without slip; empty if all agents got theirs.

    ``before`` int16[num_agents, 2] has their positions, -1 where one has left the board; ``actions`` and ``events`` [num_agents] are of this step.
    """
    step = _Step(holes, goals, before, actions)
    faults = {fault.agent: step.explain(fault) for fault in violations_of_step(before, actions, events, 0)}
    blocked = {agent: step.explain_blocked(agent) for agent in np.flatnonzero(events == Event.BLOCKED).tolist()}
    return [sentence for _, sentence in sorted((faults | blocked).items())]


class _Step:
    """One joint move, and each agent's other possible moves in it, if the other agents' moves stay."""

    def __init__(self, holes: BoolGrid, goals: Cells, before: Cells, actions: NDArray[np.int64]) -> None:
        self.holes, self.goals, self.before, self.actions = holes, goals, before, actions

    def explain(self, fault: Violation) -> str:
        agent, here, move = fault.agent, fault.cell, Action(int(self.actions[fault.agent])).name
        if fault.event is Event.OFF_BOARD:
            height, width = self.holes.shape
            what = f"agent {agent} at {here} moved {move}, off the board (rows 0 to {height - 1}, columns 0 to {width - 1}): it stayed."
        elif fault.event is Event.HOLE:
            what = f"agent {agent} at {here} moved {move} into {fault.target}, a hole, and fell."
        elif fault.event is Event.SWAP:
            other = fault.others[0]
            what = (
                f"agent {agent} at {here} moved {move} and agent {other} at {fault.target} moved "
                f"{self._move_of(other)}: they cannot exchange cells, so both had to stay."
            )
        else:
            what = f"agent {agent} at {here} moved {move} to {fault.target}{self._taken_by(fault)}"
        return f"{what[0].upper()}{what[1:]} {self._instead(agent)}"

    def explain_blocked(self, agent: int) -> str:
        here = as_cell(self.before[agent])
        wanted = as_cell(self.before[agent] + DELTAS[self.actions[agent]])
        ahead = next(other for other in range(len(self.before)) if as_cell(self.before[other]) == wanted)
        return (
            f"Agent {agent} at {here} could not move {self._move_of(agent)} to {wanted}, because agent {ahead} was stopped "
            "there: no fault of its own."
        )

    def _move_of(self, agent: int) -> str:
        return Action(int(self.actions[agent])).name

    def _taken_by(self, fault: Violation) -> str:
        """The other agents on the cell: the one that stood there, or those that moved there at the same time."""
        standing = [other for other in fault.others if as_cell(self.before[other]) == fault.target]
        if standing:
            other = standing[0]
            on_goal = ", on its goal" if as_cell(self.goals[other]) == fault.target else ""
            return f", where agent {other} stood{on_goal}: it had to stay."
        movers = " and ".join(f"agent {other} from {as_cell(self.before[other])}" for other in fault.others)
        return f" at the same time as {movers}: {'both' if len(fault.others) == 1 else 'all'} had to stay."

    def _instead(self, agent: int) -> str:
        """Every other move of this agent that would have broken no rule."""
        here = self.before[agent]
        possible = [action for action in Action if action != self.actions[agent] and self._allowed(agent, action)]
        moves = [f"{action.name} to {as_cell(here + DELTAS[action])}" for action in possible if action in _MOVES]
        went = f"gone {_either(moves)}" if moves else ""
        waited = "waited" if Action.WAIT in possible else ""
        could = ", or ".join(part for part in (went, waited) if part)
        if could:
            return f"From {as_cell(here)} it could have {could}."
        return f"No other move of agent {agent} alone was possible: another agent must move differently too."

    def _allowed(self, agent: int, action: Action) -> bool:
        """The agent makes no fault, no agent conflicts with it, and no other agent becomes at fault."""
        instead = self.actions.copy()
        instead[agent] = action
        faults = self._faults(instead)
        already = {fault.agent for fault in self._faults(self.actions)}
        return all(fault.agent in already - {agent} and agent not in fault.others for fault in faults)

    def _faults(self, actions: NDArray[np.int64]) -> list[Violation]:
        there = self.before[:, 0] >= 0  # the others have left the board
        events = np.zeros(len(there), np.int8)
        _, events[there] = joint_move(self.holes, self.before[there], actions[there])
        return violations_of_step(self.before, actions, events, 0)


def _praise(verdict: Verdict) -> str:
    steps = f"all agents are on their goals after {verdict.makespan} step{'s' if verdict.makespan != 1 else ''}"
    if verdict.optimal:
        return f"Valid and optimal: {steps}, the fewest possible."
    if verdict.makespan_gap is not None and verdict.makespan is not None:
        return f"Valid but not optimal: {steps}; {verdict.makespan - verdict.makespan_gap} would have been enough."
    return f"Valid: {steps}."


def _goals_missed(instance: Instance, plan: Plan) -> Iterator[str]:
    """A sentence or two for each agent that missed its goal."""
    positions, distances = play(instance, plan).positions, distance_fields(instance)
    for agent, goal in enumerate(instance.goals):
        path = positions[:, agent]
        if (path[-1] != goal).any():
            yield _goal_missed(agent, path, goal, len(plan[agent]), distances[agent])


def _goal_missed(agent: int, path: Cells, goal: NDArray, made: int, distance: NDArray[np.int16]) -> str:
    """The agent's last cell, and its remaining distance. ``path`` has its cells, ``made`` is the number of its moves."""
    end = path[-1]
    visits = np.flatnonzero((path == goal).all(axis=1))
    if len(visits):
        reached = int(visits[-1])
        return (
            f"Agent {agent} stood on its goal {as_cell(goal)} after move {reached} and left it with move {reached + 1}, to end "
            f"at {as_cell(end)}. It could have waited there."
        )
    ended = f"Agent {agent} ended at {as_cell(end)} after {made} move{'s' if made != 1 else ''}"
    left = int(distance[tuple(end)])
    if left < 0:
        return f"{ended}; no way over ice leads from there to its goal {as_cell(goal)}."
    nearer = [
        f"{action.name} to {as_cell(there)}"
        for action in _MOVES
        if _on_board(there := end + DELTAS[action], distance) and distance[tuple(there)] == left - 1
    ]
    return (
        f"{ended}, {left} step{'s' if left != 1 else ''} short of its goal {as_cell(goal)}. "
        f"From {as_cell(end)} the shortest way goes {_either(nearer)}."
    )


def _on_board(cell: NDArray, grid: NDArray) -> bool:
    return bool(0 <= cell[0] < grid.shape[0] and 0 <= cell[1] < grid.shape[1])


def _either(options: list[str]) -> str:
    """ "a", "a or b", "a, b or c"."""
    return options[0] if len(options) == 1 else f"{', '.join(options[:-1])} or {options[-1]}"
