"""``judge``: plays a plan to its end by the rules of the world and lists its violations, step by step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.solvers.solve import Objective, solve
from mapf_frozenlake.text.errors import ParseError
from mapf_frozenlake.types import (
    DELTAS,
    FAILURE_OF_EVENT,
    NUM_ACTIONS,
    VIOLATIONS,
    Action,
    Event,
    FailureKind,
    Instance,
    Plan,
    Verdict,
    Violation,
)
from mapf_frozenlake.world.move import joint_move

MAX_STEPS = 1_000_000
UNKNOWN_OPTIMUM = (
    "the instance does not say its least makespan, so whether the plan is optimal is unknown: judge(…, optima=('makespan',)) "
    "has it computed, and generate() draws instances that know it"
)
# Faults of one step, in the order of the joint move's rules, so that the agents' numbers do not matter.
_ORDER_WITHIN_STEP = {Event.OFF_BOARD: 0, Event.SWAP: 1, Event.VERTEX: 1, Event.HOLE: 2}


@dataclass(frozen=True)
class Playback:
    """Positions and events of all agents, step by step, until the plan's end or the first fall."""

    actions: NDArray[np.int64]  # [steps, num_agents]: as planned
    positions: NDArray[np.int16]  # [steps + 1, num_agents, 2]: row, col; first the starts
    events: NDArray[np.int8]  # [steps, num_agents]: Event codes


def judge(instance: Instance, plan: Plan | ParseError, *, optima: Collection[Objective] = ()) -> Verdict:
    """Whether the plan is valid and optimal, its cost, and every violation in it.

    The whole plan is played: there is no horizon, and success does not end it. Play continues after a violation; a fall
    ends it. The failure is the kind of the earliest violation. Optimality and the gap need the least makespan: the instance's own,
    or with ``optima`` the solver's. The gap in the sum of costs needs ``optima=("sum_of_costs",)``. A ``ParseError`` instead
    of a plan fails as ``parse_error``.
    """
    return judge_and_play(instance, plan, optima=optima)[0]


def judge_and_play(
    instance: Instance, plan: Plan | ParseError, *, optima: Collection[Objective] = ()
) -> tuple[Verdict, Playback | None]:
    """The verdict of ``judge`` and the playback; None instead of a playback if the plan could not be read."""
    if isinstance(plan, ParseError):
        unread = Verdict(
            valid=False,
            optimal=False,
            failure=FailureKind.PARSE_ERROR,
            violations=(),
            makespan=None,
            sum_of_costs=None,
            agents_on_goal=(False,) * instance.num_agents,
        )
        return unread, None
    if not set(optima) <= set(get_args(Objective)):
        raise LakeError(f"optima={optima!r}: name {' and '.join(map(repr, get_args(Objective)))}, or leave it out")
    playback = play(instance, plan)
    violations = _violations(playback)
    on_goal = (playback.positions == instance.goals).all(axis=2)  # [steps + 1, num_agents]
    arrived = bool(on_goal[-1].all())
    costs = [_settled(column) for column in on_goal.T] if arrived else []
    verdict = Verdict(
        valid=False,
        optimal=False,
        failure=_primary(violations),
        violations=violations,
        makespan=max(costs) if arrived else None,
        sum_of_costs=sum(costs) if arrived else None,
        agents_on_goal=tuple(on_goal[-1].tolist()),
    )
    if violations or not arrived:
        return verdict, playback
    least_makespan, least_sum = _least(instance, "makespan", optima), _least(instance, "sum_of_costs", optima)
    verdict = replace(
        verdict,
        valid=True,
        optimal=None if least_makespan is None else max(costs) == least_makespan,
        failure=None,
        makespan_gap=None if least_makespan is None else max(costs) - least_makespan,
        sum_of_costs_gap=None if least_sum is None else sum(costs) - least_sum,
        note=UNKNOWN_OPTIMUM if least_makespan is None else None,
    )
    return verdict, playback


def judge_batch(
    instances: Iterable[Instance], plans: Iterable[Plan | ParseError], *, optima: Collection[Objective] = ()
) -> list[Verdict]:
    """One verdict for each instance and its plan, in order: the same as ``judge`` one by one."""
    return [judge(instance, plan, optima=optima) for instance, plan in zip(instances, plans, strict=True)]


def play(instance: Instance, plan: Plan) -> Playback:
    """Play the plan on the world's joint move until it ends or an agent falls."""
    actions = actions_by_step(plan, instance.num_agents)
    positions, events = [instance.starts], []
    for now in actions:
        after, happened = joint_move(instance.holes, positions[-1], now)
        positions.append(after)
        events.append(happened)
        if (happened == Event.HOLE).any():
            break
    shape = (len(events), instance.num_agents)
    return Playback(actions[: len(events)], np.array(positions), np.array(events, dtype=np.int8).reshape(shape))


def actions_by_step(plan: Plan, num_agents: int) -> NDArray[np.int64]:
    """The plan as int64[steps, num_agents]; an agent without moves left waits. ``LakeError`` if it is not a plan."""
    if isinstance(plan, str) or not isinstance(plan, Sequence | np.ndarray):
        raise LakeError(
            f"a plan of type {type(plan).__name__}: give one list of actions for each of {num_agents} agents"
        )
    if len(plan) != num_agents:
        raise LakeError(f"a plan of {len(plan)} action lists for {num_agents} agents: give one list for each agent")
    odd = next((agent for agent, moves in enumerate(plan) if not isinstance(moves, Sequence | np.ndarray)), None)
    if odd is not None:
        raise LakeError(
            f"agent {odd}'s actions are of type {type(plan[odd]).__name__}: give a list of 0 to {NUM_ACTIONS - 1}"
        )
    steps = max(map(len, plan))
    if steps > MAX_STEPS:
        raise LakeError(f"a plan of {steps} steps: at most {MAX_STEPS} are played")
    table = np.full((steps, num_agents), Action.WAIT, dtype=np.int64)
    for agent, moves in enumerate(plan):
        for step, action in enumerate(moves):
            if not (isinstance(action, int | np.integer) and 0 <= action < NUM_ACTIONS):
                raise LakeError(f"agent {agent}'s action {action!r} in step {step}: actions are 0 to {NUM_ACTIONS - 1}")
            table[step, agent] = action
    return table


def violations_of_step(
    before: NDArray[np.int16], actions: NDArray[np.int64], events: NDArray[np.int8], step: int
) -> list[Violation]:
    """The faults of one joint move, lowest agent first: ``before`` int16[num_agents, 2], the others [num_agents]."""
    wanted = before + DELTAS[actions]
    # Off the board, the target is the agent's own cell.
    targets = np.where((events == Event.OFF_BOARD)[:, None], before, wanted)
    faults = []
    for agent in np.flatnonzero(np.isin(events, list(VIOLATIONS))).tolist():
        event = Event(int(events[agent]))
        others: tuple[int, ...] = ()
        if event is Event.VERTEX:
            others = _agents_where((targets == targets[agent]).all(axis=1), agent)
        elif event is Event.SWAP:
            others = _agents_where(
                (before == targets[agent]).all(axis=1) & (targets == before[agent]).all(axis=1), agent
            )
        faults.append(
            Violation(
                agent=agent,
                step=step,
                cell=as_cell(before[agent]),
                target=as_cell(wanted[agent]),
                event=event,
                kind=FAILURE_OF_EVENT[event],
                others=others,
            )
        )
    return faults


def _violations(playback: Playback) -> tuple[Violation, ...]:
    faults: list[Violation] = []
    for step in np.flatnonzero(playback.events.any(axis=1)).tolist():
        faults += violations_of_step(playback.positions[step], playback.actions[step], playback.events[step], step)
    return tuple(faults)


def _primary(violations: tuple[Violation, ...]) -> FailureKind:
    if not violations:
        return FailureKind.GOAL_MISSED
    return min(violations, key=lambda fault: (fault.step, _ORDER_WITHIN_STEP[fault.event])).kind


def _settled(on_goal: NDArray[np.bool_]) -> int:
    """The step after which the agent stays on its goal: on_goal bool[steps + 1] ends True."""
    away = np.flatnonzero(~on_goal)
    return int(away[-1]) + 1 if len(away) else 0


def _least(instance: Instance, objective: Objective, optima: Collection[Objective]) -> int | None:
    """The certified optimum, or the solver's if ``optima`` names it."""
    if objective == "makespan" and instance.makespan is not None:
        return instance.makespan
    if objective not in optima:
        return None
    return getattr(solve(instance, objective=objective), objective)


def _agents_where(mask: NDArray[np.bool_], but: int) -> tuple[int, ...]:
    return tuple(agent for agent in np.flatnonzero(mask).tolist() if agent != but)


def as_cell(cell: NDArray) -> tuple[int, int]:
    """Row and column as plain numbers."""
    return int(cell[0]), int(cell[1])
