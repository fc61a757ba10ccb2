"""``python -m benchmarks.evaluate_suite [--suite NAME]``: policies that must score 100 and policies that must not, beside the published rows.

The optimal plans go through ``evaluate`` in all three forms of policy: as a solver, as a text policy that reads the prompt
and prints the plan, and as a network's form that sees observations and acts in a ``LakeBatch``. Beside them: PIBT (valid, not
optimal), a greedy walker that ignores the others, and a random walker.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mapf_frozenlake as mfl
from benchmarks._record import record
from mapf_frozenlake.judge import play
from mapf_frozenlake.solvers import distance_fields, pibt, solve_batch
from mapf_frozenlake.suite import SUITES, load_suite
from mapf_frozenlake.types import DELTAS, Action, Instance, Plan


class Optimal:
    """Plans of least makespan for the boards of a suite, in the three forms that ``evaluate`` takes."""

    def __init__(self, suite: mfl.InstanceSet) -> None:
        instances = list(suite)
        solutions = solve_batch(instances)
        self.plans = {instance: solution.plan for instance, solution in zip(instances, solutions)}
        self.table = _Table(self.plans)

    def solver(self, instance: Instance) -> Plan:
        return self.plans[instance]

    def text(self, prompt: str) -> str:
        return "<think>Let me look it up.</think>\n" + mfl.format_plan(self.plans[mfl.from_text(prompt)])


class _Table:
    """The network's form: from what the planes show to the next joint move. A plan of least makespan repeats no state."""

    env_kwargs = {"observation": "grid"}  # noqa: RUF012

    def __init__(self, plans: dict[Instance, Plan]) -> None:
        self.moves: dict[bytes, list[int]] = {}
        for instance, plan in plans.items():
            playback = play(instance, plan)
            for positions, actions in zip(playback.positions, playback.actions):
                self.moves[_state(instance.holes, positions, instance.goals)] = actions.tolist()

    def act(self, observation: NDArray) -> NDArray[np.int64]:
        """Planes [n, A, 6, size, size]: hole, off the board, self, own goal, others, their goals."""
        actions = np.full(observation.shape[:2], Action.WAIT, dtype=np.int64)
        for row, planes in enumerate(observation):
            used = int(planes[:, 2].any(axis=(1, 2)).sum())
            side = int((planes[0, 1, 0] == 0).sum())
            seen = planes[:used, :, :side, :side]
            positions, goals = (np.argwhere(seen[:, plane])[:, 1:] for plane in (2, 3))
            actions[row, :used] = self.moves[_state(seen[0, 0] > 0, positions, goals)]
        return actions


def _state(holes: NDArray, positions: NDArray, goals: NDArray) -> bytes:
    return np.packbits(holes).tobytes() + positions.astype(np.int16).tobytes() + goals.astype(np.int16).tobytes()


def greedy(instance: Instance) -> Plan:
    """Every agent takes a shortest way to its goal as if it were alone."""
    return [_shortest(field, start) for field, start in zip(distance_fields(instance), instance.starts)]


def _shortest(field: NDArray, start: NDArray) -> list[int]:
    cell, way = start.astype(int), []
    while field[tuple(cell)] > 0:
        action = next(one for one in range(4) if _on_ice(field, cell + DELTAS[one]) and _nearer(field, cell, one))
        cell, way = cell + DELTAS[action], [*way, action]
    return way


def _nearer(field: NDArray, cell: NDArray, action: int) -> bool:
    return bool(field[tuple(cell + DELTAS[action])] == field[tuple(cell)] - 1)


def _on_ice(field: NDArray, cell: NDArray) -> bool:
    """-1 in a distance field is a hole, or ice without a way to the goal."""
    inside = 0 <= cell[0] < field.shape[0] and 0 <= cell[1] < field.shape[1]
    return bool(inside and field[tuple(cell)] >= 0)


def random_walk(instance: Instance) -> Plan:
    """Every agent waits or steps onto ice at random, until all stand on their goals or 4 · (height + width) steps are over."""
    rng = np.random.default_rng(list(instance.key()))
    ice = {tuple(cell) for cell in np.argwhere(~instance.holes).tolist()}
    cells, goals = ([tuple(cell) for cell in where.tolist()] for where in (instance.starts, instance.goals))
    plan: list[list[int]] = [[] for _ in cells]
    for draws in rng.random((4 * (instance.height + instance.width), len(cells))):
        if cells == goals:
            break
        for agent, (row, col) in enumerate(cells):
            around = [(action, (row + down, col + right)) for action, (down, right) in enumerate(DELTAS.tolist())]
            possible = [(action, cell) for action, cell in around if cell in ice]
            action, cells[agent] = possible[int(draws[agent] * len(possible))]
            plan[agent].append(action)
    return plan


def run(suite: mfl.InstanceSet) -> dict[str, tuple[mfl.EvaluationTable, float]]:
    """Every policy's table and the seconds it took."""
    optimal = Optimal(suite)
    policies: dict[str, tuple[Any, str]] = {
        "optimal, as a solver": (optimal.solver, "solver"),
        "optimal, as text": (optimal.text, "text"),
        "optimal, as a network": (optimal.table, "neural"),
        "PIBT": (pibt, "solver"),
        "greedy, ignoring the others": (greedy, "solver"),
        "random walk": (random_walk, "solver"),
    }
    tables = {}
    for name, (policy, form) in policies.items():
        began = time.perf_counter()
        tables[name] = mfl.evaluate(policy, suite, form=form, name=name), time.perf_counter() - began
    return tables


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evaluate_suite", description=__doc__)
    parser.add_argument("--suite", choices=list(SUITES), default="mapf-frozenlake-3150")
    suite_name = parser.parse_args().suite
    figures: dict[str, Any] = {"suite": suite_name}
    for name, (table, seconds) in run(load_suite(suite_name)).items():
        content = table.to_dict(per_instance=False)
        figures[name] = {"seconds": round(seconds, 2)} | {
            part: content[part] for part in ("overall", "rows", "by_wait_subset", "by_hole_ratio")
        }
        print(
            f"{str(table).splitlines()[0]}; regret {table.overall.regret}; failures {table.overall.failures}; {seconds:.1f} s"
        )
    path = record("evaluate_suite", figures)
    print(f"written to {path}")


if __name__ == "__main__":
    main()
