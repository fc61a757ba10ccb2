"""Played lakes: each episode's verdict and moves, and statistics of how it was played."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engineers.report import Split
from envtuning.worlds.episodes import Episode
from mapf_frozenlake.instance_set import InstanceSet
from mapf_frozenlake.judge import Playback, judge_and_play
from mapf_frozenlake.solvers import distance_fields
from mapf_frozenlake.text import ParseError
from mapf_frozenlake.types import Action, Event, FailureKind, Instance, Plan, Verdict
from mapf_frozenlake.world.move import joint_move

LETTERS = "".join(action.name[0] for action in Action)  # LDRUW
LONGEST_REPLY = 2_000  # characters of a reply that are kept with its episode
COLLISIONS = (int(Event.VERTEX), int(Event.SWAP))


@dataclass(frozen=True)
class LakeEpisode(Episode):
    """An episode with the judge's verdict and playback. These are kept in memory only; the moves are stored."""

    verdict: Verdict | None = field(default=None, compare=False, repr=False)
    playback: Playback | None = field(default=None, compare=False, repr=False)


def judged(
    case: int,
    instance: Instance,
    plan: Plan | ParseError,
    *,
    horizon: int,
    slippery: bool,
    cost: Mapping[str, int],
    reply: str = "",
) -> LakeEpisode:
    """One board's episode, judged once. ``cost`` is its cost besides env steps; ``reply`` is the text of a language model."""
    verdict, playback = judge_and_play(instance, plan)
    rates = {"valid_rate": float(verdict.valid)}
    if not slippery and verdict.optimal is not None:  # on slippery ice the optimum is unknown
        rates["optimal_rate"] = float(verdict.optimal)
    rates["legal_rate"] = float(verdict.failure in (None, FailureKind.GOAL_MISSED))
    if not slippery and verdict.makespan_gap is not None:
        rates["makespan_gap"] = float(verdict.makespan_gap)
    moves = [] if isinstance(plan, ParseError) else letters(plan)
    steps = _steps_charged(moves, verdict.makespan if verdict.valid else None, horizon)
    return LakeEpisode(
        case=case,
        slice=str(instance.height),
        failure=None if verdict.failure is None else verdict.failure.value,
        metrics=rates,
        cost={"env_steps": steps, "episodes": 1} | dict(cost),
        trace={"moves": moves} | _kept(reply),
        note=str(plan) if isinstance(plan, ParseError) else None,
        verdict=verdict,
        playback=playback,
    )


def failed(
    case: int, instance: Instance, kind: str, note: str, cost: Mapping[str, int], reply: str = ""
) -> LakeEpisode:
    """An episode without moves to judge."""
    return LakeEpisode(
        case=case,
        slice=str(instance.height),
        failure=kind,
        metrics={"valid_rate": 0.0, "optimal_rate": 0.0, "legal_rate": 0.0},
        cost={"env_steps": 1, "episodes": 1} | dict(cost),
        trace={"moves": []} | _kept(reply),
        note=note,
    )


def _kept(reply: str) -> dict[str, str]:
    """The end of a reply, where the plan stands; empty for a policy that writes no replies."""
    if not reply:
        return {}
    return {"reply": reply if len(reply) <= LONGEST_REPLY else f"…{reply[1 - LONGEST_REPLY :]}"}


def _steps_charged(moves: Sequence[str], makespan: int | None, horizon: int) -> int:
    """Env steps until success, or else the length of the plan; at least 1 and at most the horizon."""
    length = max((len(line) for line in moves), default=0)
    if makespan is not None:
        length = min(length, makespan)
    return min(max(1, length), horizon)


def letters(plan: Plan) -> list[str]:
    """One text for each agent, with a letter of LDRUW for each move."""
    return ["".join(LETTERS[action] for action in line) for line in plan]


def plan_of(trace: Any) -> Plan:
    return [[LETTERS.index(letter) for letter in line] for line in trace["moves"]]


def behaviour(instance: Instance, episode: LakeEpisode) -> dict[str, float]:
    """Counts of steps in which an agent chose to wait off its goal, of collisions, and of avoided collisions.

    A collision is avoided in a step in which the agents' shortest ways would have collided, and no agent collided.
    """
    idle = collisions = avoided = 0
    if episode.playback is not None:
        distances = distance_fields(instance)
        for step, happened in enumerate(episode.playback.events):
            here = episode.playback.positions[step]
            off_goal = (here != instance.goals).any(axis=1)
            waiting = [step < len(line) and line[step] == "W" for line in episode.trace["moves"]]
            idle += int((off_goal & np.array(waiting)).sum())
            if np.isin(happened, COLLISIONS).any():
                collisions += 1
                continue
            greedy = np.array([downhill(field, cell) for field, cell in zip(distances, here.tolist(), strict=True)])
            avoided += bool(np.isin(joint_move(instance.holes, here, greedy)[1], COLLISIONS).any())
    return {
        "episode_length": float(episode.cost["env_steps"]),
        "idle_steps": idle,
        "collisions": collisions,
        "collisions_avoided": avoided,
    }


def success_by_kind(cases: InstanceSet, episodes: Sequence[Episode]) -> dict[str, Split]:
    """Success on one size's episodes, split by what the config's knobs control: whether a wait is needed, the distance to
    the goals, and the number of agents. A kind without boards is left out.
    """
    boards = np.array([episode.case for episode in episodes])
    valid = np.array([episode.succeeded for episode in episodes])
    needs_wait = cases.needs_wait[boards]
    distance = (
        np.abs(cases.starts[boards].astype(int) - cases.goals[boards]).sum(axis=(1, 2)) / cases.num_agents[boards]
    )
    middle = np.median(distance)
    kinds = {
        "a_wait_is_needed": needs_wait == 1,
        "no_wait_is_needed": needs_wait == 0,
        "goals_are_near": distance < middle,
        "goals_are_far": distance > middle,
    }
    counts = np.asarray(cases.num_agents)[boards]
    kinds |= {f"{count}_agents": counts == count for count in np.unique(counts)}
    return {
        name: Split(episodes=int(kind.sum()), succeeded=int(valid[kind].sum()))
        for name, kind in kinds.items()
        if kind.any()
    }


def missed_by_kind(cases: InstanceSet, episodes: Sequence[LakeEpisode]) -> dict[str, float]:
    """How goals were missed without a violation, as parts of one size's episodes; empty if there is no such episode."""
    kinds = [
        how_missed(cases[episode.case], episode.playback)
        for episode in episodes
        if episode.failure == FailureKind.GOAL_MISSED.value and episode.playback is not None
    ]
    names = ("standing_still", "coming_nearer", "wandering") if kinds else ()
    return {f"goal_missed_{name}": round(kinds.count(name) / len(episodes), 3) for name in names}


def how_missed(instance: Instance, playback: Playback) -> str:
    """What the agents that ended off their goals did in the last quarter of the steps: they stood still, came nearer (the sum
    of their distances fell, so more time might have helped), or wandered.
    """
    late = playback.positions[-1 - math.ceil(len(playback.events) / 4) :]
    away = np.flatnonzero((late[-1] != instance.goals).any(axis=1))
    late = late[:, away]
    if (late == late[0]).all():
        return "standing_still"
    fields = distance_fields(instance)[away]
    begun, ended = (
        sum(int(field[row, col]) for field, (row, col) in zip(fields, cells.tolist(), strict=True))
        for cells in (late[0], late[-1])
    )
    return "coming_nearer" if ended < begun else "wandering"


def downhill(field: NDArray[np.int16], cell: Sequence[int]) -> int:
    """The first action that leads nearer to the field's goal; WAIT if there is none."""
    row, col = cell
    best, choice = field[row, col], int(Action.WAIT)
    for action, (near_row, near_col) in enumerate(((row, col - 1), (row + 1, col), (row, col + 1), (row - 1, col))):
        inside = 0 <= near_row < field.shape[0] and 0 <= near_col < field.shape[1]
        if inside and 0 <= field[near_row, near_col] < best:
            best, choice = field[near_row, near_col], action
    return choice
