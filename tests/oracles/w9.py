"""Sum of costs by the w9-pathfinding solvers, under this project's rules: no vertex, no swap, following allowed."""

from __future__ import annotations

from w9_pathfinding.envs import Grid
from w9_pathfinding.mapf import CBS, ICTS, MultiAgentAStar

from mapf_frozenlake.types import Instance

SOLVERS = {"CBS": CBS, "ICTS": ICTS, "MAA*": MultiAgentAStar}
LONGEST_PATH = 200


class OutOfTime(Exception):
    """The peer hit its cap: neither a plan nor a proof."""


def grid_of(instance: Instance) -> Grid:
    return Grid([[-1.0 if hole else 1.0 for hole in row] for row in instance.holes.tolist()], edge_collision=True)


def costs(instance: Instance, solver: str, seconds: float) -> list[int] | None:
    """Each agent's cost in a plan of least sum of costs, None where the solver says that there is no plan."""
    starts = [(col, row) for row, col in instance.starts.tolist()]
    goals = [(col, row) for row, col in instance.goals.tolist()]
    try:
        paths = SOLVERS[solver](grid_of(instance)).mapf(starts, goals, max_length=LONGEST_PATH, max_time=seconds)
    except RuntimeError as stop:
        raise OutOfTime(str(stop)) from stop
    return [len(path) - 1 for path in paths] if paths else None
