"""The bounds of the exam's families: the best open loop and the best oracle, ``python -m benchmarks.exam_ground``.

Preregistered. On each family, all 33 open loops and all 30 oracles of ``envtuning.exam.bounds`` are played on the four roots 100 to 103, with
one training seed; the one of each with the highest mean is the family's. These two and even draws are then played on the sixteen roots 1000 to
1015 with two training seeds each. The oracle's gain over the best open loop is what an engineer can gain. It is reported for every family,
whatever it is, with a 95 % interval over roots; training seeds are averaged within a root. On ``null``, even draws should equal the oracle.

Every run is kept in ``runs/exam_ground``: after a kill, the same command continues.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks._command import arguments_of, command, errors_in_one_sentence, record_if_asked
from benchmarks._kept import kept_or_made
from benchmarks._points import in_points
from benchmarks._record import RESULTS
from envtuning.exam.bounds import OPEN_LOOPS, ORACLES, Arm, Even, played
from envtuning.exam.families import DEVELOPMENT, HELD_OUT, Family
from envtuning.exam.session import Start
from envtuning.studies.intervals import t_mean

KEPT = Path(__file__).parents[1] / "runs" / "exam_ground"
TUNING = [Start(root) for root in range(100, 104)]
FRESH = [Start(root, training) for root in range(1000, 1016) for training in (0, 1)]
FAMILIES = {family.name: family for family in (*DEVELOPMENT, *HELD_OUT)}


def key_of(family: Family, start: Start, arm: Arm) -> str:
    return f"{family.model_dump_json()} {start.root} {start.training} {arm}"


def end(family: Family, task: tuple[Start, Arm]) -> float:
    """Mean success at the end of a run."""
    torch.set_num_threads(1)
    return float(played(family, *task).mean())


def ends(family: Family, tasks: Sequence[tuple[Start, Arm]], jobs: int) -> list[float]:
    """Those that are not kept yet are made."""
    by_key = {key_of(family, *task): task for task in tasks}
    kept = kept_or_made(KEPT / f"{family.name}.jsonl", by_key, partial(end, family), jobs)
    return [kept[key_of(family, *task)] for task in tasks]


def searched(family: Family, arms: Sequence[Arm], jobs: int) -> tuple[Arm, list[dict[str, Any]]]:
    """The best of these arms on the tuning roots, and all of them, the best first."""
    found = np.reshape(ends(family, [(start, arm) for arm in arms for start in TUNING], jobs), (len(arms), -1))
    order = np.argsort(-found.mean(1), kind="stable")
    told = [{"arm": str(arms[at]), "success": round(float(found[at].mean()), 4)} for at in order]
    return arms[order[0]], told


def bounds(family: Family, jobs: int) -> dict[str, Any]:
    (open_loop, opened), (oracle, known) = searched(family, OPEN_LOOPS, jobs), searched(family, ORACLES, jobs)
    arms: dict[str, Arm] = {"even": Even(), "open loop": open_loop, "oracle": oracle}
    found = {}
    for name, arm in arms.items():
        runs = np.reshape(ends(family, [(start, arm) for start in FRESH], jobs), (-1, 2))
        found[name] = {"arm": str(arm), "success": float(runs.mean()), "per_run": runs.round(4).tolist()}
    by_root = {name: np.mean(row["per_run"], 1) for name, row in found.items()}
    gain = t_mean((by_root["oracle"] - by_root["open loop"]).tolist())
    over_even = t_mean((by_root["oracle"] - by_root["even"]).tolist())
    searches = {"open loop": opened, "oracle": known}
    return {"family": family.model_dump(mode="json"), "rows": found, "oracle_over_open_loop": asdict(gain), "oracle_over_even": asdict(over_even), "searches": searches}  # fmt: skip


def line(found: dict[str, Any]) -> str:
    rows, name = found["rows"], found["family"]["name"]
    cells = [f"`{name}`", *(f"{100 * rows[row]['success']:.1f}" for row in rows)]
    return f"| {' | '.join([*cells, in_points(found['oracle_over_open_loop'])])} |"


def with_stored(figures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The stored families that were not measured now, each with its commit, and those that were."""
    path = RESULTS / "exam_ground.json"
    stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"commit": "", "figures": {"families": []}}  # fmt: skip
    new = {found["family"]["name"] for found in figures}
    old = [{"commit": stored["commit"], **found} for found in stored["figures"]["families"]]
    return [found for found in old if found["family"]["name"] not in new] + figures


def main() -> None:
    parser = command(__doc__)
    parser.add_argument("--families", nargs="*", choices=FAMILIES, default=[family.name for family in DEVELOPMENT])
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (2)")
    arguments = arguments_of(parser)
    figures = []
    with errors_in_one_sentence():
        for name in arguments.families:
            figures.append(bounds(FAMILIES[name], arguments.jobs))
            print(line(figures[-1]), flush=True)
    record_if_asked(arguments, "exam_ground", {"families": with_stored(figures)})


if __name__ == "__main__":
    main()
