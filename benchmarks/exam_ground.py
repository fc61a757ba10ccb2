"""The bounds of the exam's families: the best open loop and the best oracle, ``python -m benchmarks.exam_ground``.

Preregistered. On each development family, all 33 open loops and all 30 oracles of ``envtuning.exam.bounds`` are played on the four roots 100
to 103, with one training seed; the one of each with the highest mean is the family's. On held-out families, all are played on one of these
roots, and the best four on the other three, too. What the bounds reach on fresh roots is in ``benchmarks.exam_table``, beside the engineers.

Every run is kept in ``runs/exam_ground``: after a kill, the same command continues.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks._command import arguments_of, command, errors_in_one_sentence, record_if_asked
from benchmarks._kept import kept_or_made
from benchmarks._record import RESULTS
from envtuning.exam.bounds import OPEN_LOOPS, ORACLES, Arm, played
from envtuning.exam.families import DEVELOPMENT, HELD_OUT, Family
from envtuning.exam.session import Start
from envtuning.exam.tasks import Ints
from envtuning.exam.training import Floats

KEPT = Path(__file__).parents[1] / "runs" / "exam_ground"
TUNING = [Start(root) for root in range(100, 104)]
BEST = 4  # arms that are played on all of these roots, on a held-out family
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
    seen = len(TUNING) if family in DEVELOPMENT else 1
    found, first = means(family, arms, TUNING[:seen], jobs)
    told = [{"arm": str(arms[at]), "success": round(float(found[at]), 4)} for at in first]
    if seen == len(TUNING):
        return arms[first[0]], told
    best = [arms[at] for at in first[:BEST]]
    found, order = means(family, best, TUNING, jobs)
    ahead = [{"arm": str(best[at]), "success": round(float(found[at]), 4), "roots": len(TUNING)} for at in order]
    return best[order[0]], ahead + told[BEST:]


def means(family: Family, arms: Sequence[Arm], starts: Sequence[Start], jobs: int) -> tuple[Floats, Ints]:
    """The mean of each arm, and the arms' places from the best to the worst."""
    played_by_all = ends(family, [(start, arm) for start in starts for arm in arms], jobs)
    found = np.reshape(played_by_all, (len(starts), -1)).mean(0)
    return found, np.argsort(-found, kind="stable")


def bounds(family: Family, jobs: int) -> dict[str, Any]:
    (open_loop, opened), (oracle, known) = searched(family, OPEN_LOOPS, jobs), searched(family, ORACLES, jobs)
    return {
        "family": family.model_dump(mode="json"),
        "open loop": str(open_loop),
        "oracle": str(oracle),
        "searches": {"open loop": opened, "oracle": known},
    }


def line(found: dict[str, Any]) -> str:
    return f"`{found['family']['name']}`: {found['open loop']}, {found['oracle']}"


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
