"""Certified instances per second against w9-pathfinding's best solver, and how the cost of a certificate grows.

Both sides get the same candidate boards: drawn uniformly, thrown away unless each agent alone can reach its goal. Both are
charged for drawing them, thrown-away draws included, and for each candidate, solvable or not. For that, ours proves the
least makespan and decides whether a wait is needed; a peer finds one plan of least sum of costs, its Grid included
(``times_call_alone`` leaves the Grid out). CPU time of one core; a rate counts the solvable boards.

    python -m benchmarks.solvers peers | growth | plans [--boards 300]

``plans`` asks for plans through the public ``solve_batch``, on one thread, ``Solution`` objects left unmade and made, against
the call of w9's best solver on the same boards, its Grid left out and included.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks._record import record
from mapf_frozenlake.errors import SolverBudgetExceeded
from mapf_frozenlake.generator import kernel
from mapf_frozenlake.generator.generate import seed_key
from mapf_frozenlake.generator.strata import hole_count
from mapf_frozenlake.instance_set import InstanceSet
from mapf_frozenlake.solvers import solve, solve_batch
from mapf_frozenlake.solvers.certify import FEASIBLE, INFEASIBLE, Certificates, certify_batch, certify_one
from mapf_frozenlake.solvers.solve import Objective
from mapf_frozenlake.types import Instance

SECONDS_PER_BOARD = 0.5  # a peer is stopped there, and charged that; the board does not count as solved
SECONDS_PER_ROW = 2.0  # a peer that has spent this on a row is not given its remaining boards
TARGETS = {2: (4.0, 10.0), 3: (4.0, 10.0), 4: (1.5, 4.0), 5: (1.0, 2.0)}  # agents: (at least, aim)
SIZES, HOLE_RATIOS, AGENTS = (5, 8, 10), (0.1, 0.2, 0.3, 0.4, 0.5), (2, 3, 4, 5)
OUR_CAP = 10_000_000  # expansions per board
GROWTH_BUDGET = 500_000  # expansions a plan in the growth tables may take; the few that take more are charged that


def candidates(agents: int, size: int, hole_ratio: float, n: int) -> tuple[InstanceSet, int, float]:
    """n boards on which each agent alone can reach its goal, how many were drawn for them, and the CPU seconds of that."""
    room, tally = InstanceSet.empty(n, size, size, agents), np.zeros((n, kernel.NUM_FATES), np.int64)
    began = time.process_time()
    kernel.fill_reachable(
        seed_key(0), np.arange(n), np.arange(n), np.zeros(5), size, size, agents, hole_count(size, size, agents, hole_ratio), 1, np.empty((0, 3), np.int64),
        np.empty(0, np.uint64), 1_000_000, room.holes, room.starts, room.goals, tally,
    )  # fmt: skip
    return room, int(tally.sum()), time.process_time() - began


def certify_all(boards: InstanceSet) -> tuple[Certificates, float, np.ndarray]:
    """The certificates, the CPU seconds of all of them in one call, and of each in a call of its own."""
    arguments = boards.holes, boards.starts, boards.goals
    began = time.process_time()
    certificates = certify_batch(*arguments, budget=OUR_CAP, num_threads=1)
    together = time.process_time() - began
    each = np.empty(len(boards.holes))
    size, agents = boards.holes.shape[1], boards.starts.shape[1]
    for row, (holes, starts, goals) in enumerate(zip(*arguments, strict=True)):
        began = time.process_time()
        certify_one(holes, size, size, starts, goals, agents, OUR_CAP)
        each[row] = time.process_time() - began
    return certificates, together, each


def w9_solvers() -> dict[str, Callable[[Any], Any]]:
    from w9_pathfinding.mapf import CBS, ICTS, MultiAgentAStar

    return {"CBS": CBS, "ICTS": ICTS, "MAA*": MultiAgentAStar}


def w9_all(
    solver: Callable[[Any], Any], boards: InstanceSet, cap: float, most_seconds: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Per board: whether a plan was found, the CPU seconds of making the Grid, those of the solver's call.

    ``cap`` is for one board; after ``most_seconds`` for all of them the rest is left out.
    """
    from w9_pathfinding.envs import Grid

    n = len(boards.holes)
    solved, making, solving = np.zeros(n, bool), np.zeros(n), np.zeros(n)
    for row in range(n):
        if solving.sum() > most_seconds:
            return solved[:row], making[:row], solving[:row]
        weights = np.where(boards.holes[row], -1.0, 1.0).tolist()
        starts = [(col, line) for line, col in boards.starts[row].tolist()]
        goals = [(col, line) for line, col in boards.goals[row].tolist()]
        began = time.process_time()
        engine = solver(Grid(weights, edge_collision=True))
        made = time.process_time()
        try:
            solved[row] = bool(engine.mapf(starts, goals, max_time=cap))
        except RuntimeError:  # its way to say that the time is over
            solved[row] = False
        solving[row] = time.process_time() - made
        making[row] = made - began
    return solved, making, solving


def certified_boards(
    size: int, agents: int, hole_ratio: float, wanted: int
) -> tuple[dict[str, Any], InstanceSet, Certificates]:
    """A row's own figures, its candidate boards, at least ``wanted`` of them solvable, and their certificates."""
    n = wanted
    while True:
        boards, draws, drawing = candidates(agents, size, hole_ratio, n)
        certificates, certifying, each = certify_all(boards)
        solvable = certificates.status == FEASIBLE
        if solvable.sum() >= wanted:
            break
        n = int(1.02 * n * wanted / max(solvable.sum(), 1)) + 5
    return (
        {
            "agents": agents, "size": size, "hole_ratio": hole_ratio,
            "draws": draws, "candidates": n, "solvable": int(solvable.sum()),
            "undecided": int((~solvable & (certificates.status != INFEASIBLE)).sum()),
            "share_needing_a_wait": float(certificates.needs_wait[solvable].mean()),
            "drawing_seconds": drawing, "certified_per_second": float(solvable.sum() / (drawing + certifying)),
            "mean_ms": 1e3 * float(each.mean()), "median_ms": 1e3 * float(np.median(each)), "slowest_ms": 1e3 * float(each.max()),
        },
        boards,
        certificates,
    )  # fmt: skip


def peer_figures(
    solver: Callable[[Any], Any], boards: InstanceSet, certificates: Certificates, drawing: float
) -> dict[str, Any]:
    """One peer on the same boards; where it is cut short, it is charged for drawing those it was given."""
    solved, making, solving = w9_all(solver, boards, SECONDS_PER_BOARD, SECONDS_PER_ROW)
    given = len(solved)
    status = certificates.status[:given]
    assert not (solved & (status == INFEASIBLE)).any(), "a peer solved a board that was certified infeasible"
    share_of_drawing = drawing * given / len(boards)
    return {
        "candidates": given,
        "unsolved_at_cap": int((~solved & (status == FEASIBLE)).sum()),
        "solved_per_second": float(solved.sum() / (share_of_drawing + making.sum() + solving.sum())),
        "solved_per_second_call_alone": float(solved.sum() / (share_of_drawing + solving.sum())),
        "mean_ms": 1e3 * float((making + solving).mean()),
        "median_ms": 1e3 * float(np.median(making + solving)),
    }


def against_peers(wanted: int, rows: list[tuple[int, int, float]]) -> list[dict[str, Any]]:
    table = []
    for agents, size, hole_ratio in rows:
        row, boards, certificates = certified_boards(size, agents, hole_ratio, wanted)
        drawing = row["drawing_seconds"]
        peers = {name: peer_figures(solver, boards, certificates, drawing) for name, solver in w9_solvers().items()}
        for ratio, rate in (
            ("times_fastest_peer", "solved_per_second"),
            ("times_call_alone", "solved_per_second_call_alone"),
        ):
            row[ratio] = row["certified_per_second"] / max(peer[rate] for peer in peers.values())
        row["times_fastest_peer_median"] = min(peer["median_ms"] for peer in peers.values()) / row["median_ms"]
        row["fastest_peer"] = max(peers, key=lambda name: peers[name]["solved_per_second"])
        row["peers"] = peers
        table.append(row)
        print(
            f"{agents} agents {size:2}×{size:<2} holes {hole_ratio}: {row['solvable']} of {row['draws']} draws, "
            f"{row['certified_per_second']:9.0f}/s, {row['fastest_peer']} "
            f"{peers[row['fastest_peer']]['solved_per_second']:8.1f}/s: {row['times_fastest_peer']:7.1f}× "
            f"(call alone {row['times_call_alone']:.1f}×, median {row['times_fastest_peer_median']:.1f}×)",
            flush=True,
        )
    return table


def _cpu_seconds(work: Callable[[], None]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def _solve_or_stop(board: Instance, objective: Objective) -> None:
    with contextlib.suppress(SolverBudgetExceeded):  # charged what it spent
        solve(board, objective, budget=GROWTH_BUDGET)


def growth(wanted: int) -> list[dict[str, Any]]:
    """One knob at a time: agents, size, hole ratio; certificates and both objectives' plans."""
    cases = [(agents, 8, 0.2) for agents in range(1, 8)]
    cases += [(4, size, 0.2) for size in (4, 6, 12, 16, 24, 32)]
    cases += [(4, 8, ratio) for ratio in (0.0, 0.1, 0.3, 0.4, 0.5, 0.6)]
    table = []
    for agents, size, hole_ratio in cases:
        row, drawn, certificates = certified_boards(size, agents, hole_ratio, wanted)
        boards = [
            Instance(drawn.holes[at], drawn.starts[at], drawn.goals[at])
            for at in np.flatnonzero(certificates.status == FEASIBLE)
        ]
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


def plans(boards_per_row: int) -> list[dict[str, Any]]:
    """``solve_batch`` on two agents against w9's best solver of the row: microseconds a board, best of three turns."""
    table = []
    for size in SIZES:
        for hole_ratio in HOLE_RATIOS:
            boards = _with_sizes(candidates(2, size, hole_ratio, boards_per_row)[0], size)
            rows: dict[str, list[float]] = {}
            for _ in range(3):
                for objective in ("makespan", "sum_of_costs"):
                    began = time.process_time()
                    found = solve_batch(boards, objective, num_threads=1)
                    rows.setdefault(objective, []).append(time.process_time() - began)
                    list(found)
                    rows.setdefault(f"{objective}, objects", []).append(time.process_time() - began)
                for name, solver in w9_solvers().items():
                    solved, making, solving = w9_all(solver, boards, SECONDS_PER_BOARD, SECONDS_PER_ROW)
                    scale = len(boards) / len(solved)
                    rows.setdefault(f"w9 {name}", []).append(scale * float(solving.sum()))
                    rows.setdefault(f"w9 {name} and Grid", []).append(scale * float((making + solving).sum()))
            best = {name: round(1e6 * min(each) / len(boards), 2) for name, each in rows.items()}
            alone = min(cost for name, cost in best.items() if name.startswith("w9") and "Grid" not in name)
            whole = min(cost for name, cost in best.items() if name.endswith("Grid"))
            ratios = {}
            for objective in ("makespan", "sum_of_costs"):
                ratios[objective] = {
                    "times_w9": round(whole / best[objective], 2),
                    "times_w9_call_alone": round(alone / best[objective], 2),
                    "times_w9_objects_made": round(whole / best[f"{objective}, objects"], 2),
                }
            table.append({"agents": 2, "size": size, "hole_ratio": hole_ratio, "microseconds": best, "ratios": ratios})
            print(f"2 agents {size:2}×{size:<2} holes {hole_ratio}: {ratios}", flush=True)
    return table


def _with_sizes(boards: InstanceSet, size: int) -> InstanceSet:
    """The same boards as a whole set: the generator's kernel fills only what it draws."""
    n, agents = boards.starts.shape[:2]
    sides = np.full(n, size, np.int16)
    return replace(boards, heights=sides, widths=sides, num_agents=np.full(n, agents, np.int16))


def summary(table: list[dict[str, Any]]) -> list[dict[str, Any]]:
    lines = []
    for agents, (least, aim) in TARGETS.items():
        rows = [row for row in table if row["agents"] == agents]
        times, call_alone = ([row[ratio] for row in rows] for ratio in ("times_fastest_peer", "times_call_alone"))
        lines.append(
            {
                "agents": agents,
                "target": least,
                "aim": aim,
                "worst_row": min(times),
                "median_row": statistics.median(times),
                "worst_row_call_alone": min(call_alone),
            }
        )
        print(
            f"{agents} agents: worst row {min(times):.1f}× (call alone {min(call_alone):.1f}×), median row "
            f"{statistics.median(times):.1f}× (target {least}×)"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=["peers", "growth", "plans"])
    parser.add_argument("--boards", type=int, default=300, help="solvable boards a row")
    options = parser.parse_args()
    certified_boards(5, 3, 0.3, 50)  # compile
    for objective in ("makespan", "sum_of_costs"):
        solve(Instance(np.zeros((2, 2)), [[0, 0]], [[1, 1]]), objective)
    if options.table == "growth":
        print(record("solvers_growth", {"rows": growth(options.boards)}))
        return
    if options.table == "plans":
        rows = plans(options.boards)
        worst = {
            f"{objective}, {kind}": min(row["ratios"][objective][kind] for row in rows)
            for objective in ("makespan", "sum_of_costs")
            for kind in ("times_w9", "times_w9_call_alone", "times_w9_objects_made")
        }
        print(record("solvers_plans", {"worst_row": worst, "load_average": os.getloadavg()[0], "rows": rows}))
        return
    table = against_peers(options.boards, [(a, s, r) for a in AGENTS for s in SIZES for r in HOLE_RATIOS])
    caps = {
        "peer_seconds_per_board": SECONDS_PER_BOARD,
        "peer_seconds_per_row": SECONDS_PER_ROW,
        "our_expansions": OUR_CAP,
    }
    load = os.getloadavg()[0]
    print(record("solvers", {"caps": caps, "load_average": load, "summary": summary(table), "rows": table}))


if __name__ == "__main__":
    main()
