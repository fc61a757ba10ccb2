"""Episodes that were played for validation: what is kept of each, and what is counted over many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engineers.report import SliceResult
from mapf_frozenlake.judge import play
from mapf_frozenlake.solvers import distance_fields
from mapf_frozenlake.types import NUM_ACTIONS, Action, Event, FailureKind, Instance, Plan
from mapf_frozenlake.world.move import joint_move

LETTERS = "LDRUW"  # by action
COLLISIONS = (int(Event.VERTEX), int(Event.SWAP))


@dataclass(frozen=True)
class Episode:
    """One board played once."""

    case: int  # row in the suite
    size: int
    moves: tuple[str, ...]  # per agent, a letter of LDRUW per step
    steps: int  # env steps it took
    valid: bool
    optimal: bool | None
    failure: str | None  # a FailureKind; None when valid
    makespan: int | None = None
    gap: int | None = None  # makespan over the least possible
    note: str | None = None  # why no plan could be read from a reply

    @property
    def plan(self) -> Plan:
        return [[LETTERS.index(letter) for letter in line] for line in self.moves]

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"moves": list(self.moves)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Episode:
        return cls(**(data | {"moves": tuple(data["moves"])}))


def letters(plan: Plan) -> tuple[str, ...]:
    return tuple("".join(LETTERS[action] for action in line) for line in plan)


def by_size(episodes: Iterable[Episode]) -> dict[int, list[Episode]]:
    """Smallest size first."""
    grouped: dict[int, list[Episode]] = {}
    for episode in episodes:
        grouped.setdefault(episode.size, []).append(episode)
    return dict(sorted(grouped.items()))


def rates(episodes: Sequence[Episode]) -> dict[str, float]:
    """``valid_rate``, ``optimal_rate``, ``legal_rate`` (no violation, arrived or not), mean makespan over the optimum."""
    gaps = [episode.gap for episode in episodes if episode.gap is not None]
    found = {
        "valid_rate": fmean(episode.valid for episode in episodes),
        "optimal_rate": fmean(bool(episode.optimal) for episode in episodes),
        "legal_rate": fmean(episode.failure in (None, FailureKind.GOAL_MISSED) for episode in episodes),
    }
    return found | ({"makespan_gap": fmean(gaps)} if gaps else {})


def slice_results(episodes: Iterable[Episode]) -> list[SliceResult]:
    """The table of a validation: one row per map size."""
    return [
        SliceResult(
            name=str(size),
            episodes=len(group),
            metrics=rates(group),
            failures=dict(sorted(Counter(episode.failure for episode in group if episode.failure).items())),
        )
        for size, group in by_size(episodes).items()
    ]


def pooled(results: Sequence[SliceResult], metric: str = "valid_rate") -> float:
    """A rate over all episodes of a table; 0 where there are none."""
    total = sum(row.episodes for row in results)
    return sum(row.metrics.get(metric, 0.0) * row.episodes for row in results) / total if total else 0.0


def behaviour(instance: Instance, episode: Episode) -> dict[str, float]:
    """How it was played: waits off the goal, collisions had, and collisions avoided.

    A collision is avoided in a step in which everybody's shortest way would have collided, and nobody did.
    """
    playback = play(instance, episode.plan)
    distances = distance_fields(instance)
    waits = collisions = avoided = 0
    for step, happened in enumerate(playback.events):
        here = playback.positions[step]
        off_goal = (here != instance.goals).any(axis=1)
        waiting = [step < len(line) and line[step] == "W" for line in episode.moves]
        waits += int((off_goal & np.array(waiting)).sum())
        if np.isin(happened, COLLISIONS).any():
            collisions += 1
            continue
        greedy = np.array([downhill(field, cell) for field, cell in zip(distances, here.tolist(), strict=True)])
        avoided += bool(np.isin(joint_move(instance.holes, here, greedy)[1], COLLISIONS).any())
    return {
        "episode_length": float(episode.steps),
        "waits": waits,
        "collisions": collisions,
        "collisions_avoided": avoided,
    }


def downhill(field: NDArray[np.int16], cell: Sequence[int]) -> int:
    """The first action that brings the cell nearer to the field's goal; WAIT where none does."""
    row, col = cell
    best, choice = field[row, col], int(Action.WAIT)
    for action, (near_row, near_col) in enumerate(((row, col - 1), (row + 1, col), (row, col + 1), (row - 1, col))):
        inside = 0 <= near_row < field.shape[0] and 0 <= near_col < field.shape[1]
        if inside and 0 <= field[near_row, near_col] < best:
            best, choice = field[near_row, near_col], action
    return choice


assert len(LETTERS) == NUM_ACTIONS
