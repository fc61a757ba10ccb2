"""Certified instances per second against solving alone by w9-pathfinding, and how the cost of a certificate grows.

Ours is charged for everything: drawing boards, throwing away the unsolvable ones, least makespan and needs-a-wait. Each
peer is only charged for solving (sum of costs) the boards that were kept. Same boards, same run, CPU time of one core.

    python -m benchmarks.solvers peers | growth [--boards 300]
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from typing import Any

import numpy as np
from numba import njit
from w9_pathfinding.envs import Grid
from w9_pathfinding.mapf import CBS, ICTS, MultiAgentAStar

from benchmarks._record import record
from mapf_frozenlake.errors import SolverBudgetExceeded
from mapf_frozenlake.solvers import solve
from mapf_frozenlake.solvers.certify import DEFAULT_BUDGET, FEASIBLE, OUT_OF_BUDGET, certify_one
from mapf_frozenlake.solvers.solve import Objective
from mapf_frozenlake.types import Instance

PEERS = {"CBS": CBS, "ICTS": ICTS, "MAA*": MultiAgentAStar}
SECONDS_PER_BOARD = 1.0  # a peer is stopped there, and charged that
SECONDS_PER_ROW = 4.0  # a peer that has spent this on a row is not given its remaining boards
TARGETS = {2: (4.0, 10.0), 3: (4.0, 10.0), 4: (1.5, 4.0), 5: (1.0, 2.0)}  # agents: (at least, aim)
SIZES, HOLE_RATIOS, AGENTS = (5, 8, 10), (0.1, 0.2, 0.3, 0.4, 0.5), (2, 3, 4, 5)
DRAWS_AT_MOST = 400_000
GROWTH_BUDGET = 500_000  # expansions a plan in the growth tables may take; the few that take more are charged that


@njit(cache=True)
def _draw(size, agents, num_holes, cells, holes, starts, goals):
    """A board with every placement equally likely."""
    holes[:] = False
    for i in range(2 * agents + num_holes):
        j = np.random.randint(i, size * size)  # noqa: NPY002 (compiled)
        cells[i], cells[j] = cells[j], cells[i]
        row, col = divmod(cells[i], size)
        if i < agents:
            starts[i, 0], starts[i, 1] = row, col
        elif i < 2 * agents:
            goals[i - agents, 0], goals[i - agents, 1] = row, col
        else:
            holes[row, col] = True


@njit(cache=True)
def _collect(seed, size, agents, num_holes, wanted, most_draws, budget, holes, starts, goals, makespans, needs_wait):
    """Draw until ``wanted`` boards are certified; (certified, draws, undecided)."""
    np.random.seed(seed)  # noqa: NPY002 (compiled)
    cells = np.arange(size * size)
    kept = draws = undecided = 0
    while kept < wanted and draws < most_draws:
        draws += 1
        _draw(size, agents, num_holes, cells, holes[kept], starts[kept], goals[kept])
        status, makespan, waits = certify_one(holes[kept], size, size, starts[kept], goals[kept], agents, budget)
        undecided += status == OUT_OF_BUDGET
        if status == FEASIBLE:
            makespans[kept], needs_wait[kept] = makespan, waits
            kept += 1
    return kept, draws, undecided


def certified_boards(size: int, agents: int, hole_ratio: float, wanted: int, seed: int) -> tuple[dict[str, Any], list]:
    """A row's own figures, and the boards."""
    num_holes = int(hole_ratio * (size * size - 2 * agents) + 0.5)
    holes = np.zeros((wanted, size, size), bool)
    starts, goals = np.zeros((2, wanted, agents, 2), np.int16)
    makespans, needs_wait = np.zeros(wanted, np.int64), np.zeros(wanted, np.int64)
    begin = time.process_time()
    kept, draws, undecided = _collect(
        seed,
        size,
        agents,
        num_holes,
        wanted,
        DRAWS_AT_MOST,
        DEFAULT_BUDGET,
        holes,
        starts,
        goals,
        makespans,
        needs_wait,
    )
    seconds = time.process_time() - begin
    boards = [Instance(holes[i], starts[i], goals[i], makespan=int(makespans[i])) for i in range(kept)]
    own = [
        _cpu_seconds(lambda b=b: certify_one(b.holes, size, size, b.starts, b.goals, agents, DEFAULT_BUDGET))
        for b in boards
    ]
    row = {
        "agents": agents, "size": size, "hole_ratio": hole_ratio,
        "boards": kept, "draws": draws, "undecided_draws": undecided,
        "share_needing_a_wait": float(needs_wait[:kept].mean()) if kept else None,
        "certified_per_second": kept / seconds,
        "median_ms": 1e3 * statistics.median(own) if own else None,
        "slowest_ms": 1e3 * max(own) if own else None,
    }  # fmt: skip
    return row, boards


def _cpu_seconds(work) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def peer_figures(name: str, boards: list[Instance]) -> dict[str, Any]:
    """One peer on the same boards; the grids are built outside the clock."""
    spent: list[float] = []
    stopped = 0
    for board in boards:
        grid = Grid([[-1.0 if hole else 1.0 for hole in line] for line in board.holes.tolist()], edge_collision=True)
        solver = PEERS[name](grid)
        starts = [(col, row) for row, col in board.starts.tolist()]
        goals = [(col, row) for row, col in board.goals.tolist()]
        begin = time.process_time()
        try:
            paths = solver.mapf(starts, goals, max_length=200, max_time=SECONDS_PER_BOARD)
        except RuntimeError:
            paths, stopped = None, stopped + 1
        spent.append(time.process_time() - begin)
        if paths is not None:
            assert board.makespan <= max(len(path) - 1 for path in paths), (
                "a peer's plan is shorter than the least makespan"
            )
        if sum(spent) > SECONDS_PER_ROW:
            break
    return {
        "boards": len(spent),
        "stopped_at_cap": stopped,
        "solved_per_second": len(spent) / sum(spent),
        "median_ms": 1e3 * statistics.median(spent),
    }


def against_peers(wanted: int, rows: list[tuple[int, int, float]]) -> list[dict[str, Any]]:
    table = []
    for index, (agents, size, hole_ratio) in enumerate(rows):
        row, boards = certified_boards(size, agents, hole_ratio, wanted, seed=index)
        row["peers"] = {name: peer_figures(name, boards) for name in PEERS}
        fastest = max(row["peers"], key=lambda name: row["peers"][name]["solved_per_second"])
        row["fastest_peer"] = fastest
        row["times_fastest_peer"] = row["certified_per_second"] / row["peers"][fastest]["solved_per_second"]
        quickest_median = min(peer["median_ms"] for peer in row["peers"].values())
        row["times_fastest_peer_median"] = quickest_median / row["median_ms"]
        table.append(row)
        print(
            f"{agents} agents {size:2}×{size:<2} holes {hole_ratio}: {row['boards']} boards of {row['draws']} draws, "
            f"{row['certified_per_second']:9.0f}/s, {fastest} {row['peers'][fastest]['solved_per_second']:8.1f}/s: "
            f"{row['times_fastest_peer']:7.1f}× (median {row['times_fastest_peer_median']:.1f}×)",
            flush=True,
        )
    return table


def _solve_or_stop(board: Instance, objective: Objective) -> None:
    with contextlib.suppress(SolverBudgetExceeded):  # charged what it spent
        solve(board, objective, budget=GROWTH_BUDGET)


def growth(wanted: int) -> list[dict[str, Any]]:
    """One knob at a time: agents, size, hole ratio; certificates and both objectives' plans."""
    cases = [(agents, 8, 0.2) for agents in range(1, 8)]
    cases += [(4, size, 0.2) for size in (4, 6, 12, 16, 24, 32)]
    cases += [(4, 8, ratio) for ratio in (0.0, 0.1, 0.3, 0.4, 0.5, 0.6)]
    table = []
    for index, (agents, size, hole_ratio) in enumerate(cases):
        row, boards = certified_boards(size, agents, hole_ratio, wanted, seed=1000 + index)
        for objective in ("makespan", "sum_of_costs"):
            spent = sorted(_cpu_seconds(lambda b=b, o=objective: _solve_or_stop(b, o)) for b in boards)
            row[f"solve_{objective}_ms"] = {
                "mean": 1e3 * statistics.mean(spent),
                "median": 1e3 * spent[len(spent) // 2],
                "p99": 1e3 * spent[int(0.99 * len(spent))],
            }
        table.append(row)
        print(
            f"{agents} agents {size:2}×{size:<2} holes {hole_ratio}: {row['certified_per_second']:9.0f}/s, "
            f"median {row['median_ms']:.3f} ms, slowest {row['slowest_ms']:.2f} ms, "
            f"sum of costs {row['solve_sum_of_costs_ms']['mean']:.2f} ms",
            flush=True,
        )
    return table


def summary(table: list[dict[str, Any]]) -> list[dict[str, Any]]:
    lines = []
    for agents, (least, aim) in TARGETS.items():
        times = [row["times_fastest_peer"] for row in table if row["agents"] == agents]
        if times:
            lines.append(
                {
                    "agents": agents,
                    "target": least,
                    "aim": aim,
                    "worst_row": min(times),
                    "median_row": statistics.median(times),
                }
            )
            print(
                f"{agents} agents: worst row {min(times):.1f}×, median row {statistics.median(times):.1f}× (target {least}×)"
            )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=["peers", "growth"])
    parser.add_argument("--boards", type=int, default=300, help="boards a row")
    options = parser.parse_args()
    certified_boards(5, 3, 0.3, 50, seed=0)  # compile
    solve(certified_boards(4, 2, 0.1, 1, seed=0)[1][0], "sum_of_costs")
    if options.table == "growth":
        print(record("solvers_growth", {"rows": growth(options.boards)}))
        return
    table = against_peers(options.boards, [(a, s, r) for a in AGENTS for s in SIZES for r in HOLE_RATIOS])
    caps = {"seconds_per_board": SECONDS_PER_BOARD, "seconds_per_row": SECONDS_PER_ROW, "draws": DRAWS_AT_MOST}
    print(record("solvers", {"caps": caps, "summary": summary(table), "rows": table}))


if __name__ == "__main__":
    main()
