"""What the reports of the gate cost, and what ``reader`` gains if it pays for them: ``python -m benchmarks.gate_cost``.

In ``python -m benchmarks.gate_engineers`` all arms have the same updates, and reports are free. But a stage trains on 960 questions, and
a report of 50 cases for each of 24 tasks asks 1,200. Here ``reader`` may ask fewer, and pays for its five reports with updates. The
schedules that read nothing pay nothing. Roots and draws are those of ``gate_engineers``; the test has other cases, and as many.

- *free*: as in ``gate_engineers``;
- *by compute*: a question that is only answered costs a third of one that is trained on, because it has no backward pass;
- *by question*: both cost the same, as if right answers were what is scarce.

Written before any of these runs: for each charge, the number of cases is chosen on the two tuning roots with two training seeds, from 5,
10, 20 and 50. The gain of ``reader`` survives a charge if the least one-sided 95 % bound of its mean gain over the open-loop arms is above
zero on the sixteen fresh roots. ``read-once`` is charged in the same way, for the only report that it reads.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import torch

import engineers
from benchmarks import gate, gate_rivals
from benchmarks._command import arguments_of, command, record_if_asked
from benchmarks._points import in_points
from benchmarks._record import RESULTS
from benchmarks.gate import FRESH, SLOW, TUNE, Run, Variant
from benchmarks.gate_engineers import TRAININGS, asking, measured

CASES = (5, 10, 20, 50)  # of each task in a report
CHARGES = {"free": 0.0, "by compute": 1 / 3, "by question": 1.0}  # what a question costs, in questions of training
REPORTS = {"reader": SLOW.stages - 1, "read-once": 1}  # how many an arm reads
gate.ARMS["reader"] = (asking(engineers.make("reader")), (None,))


def charged(arm: str, cases: int, charge: float) -> Variant:
    """The gate's variant with reports of this size, and the updates that are left when they are paid for."""
    budget = SLOW.stages * SLOW.updates * SLOW.batch
    paid = REPORTS[arm] * SLOW.slices * cases * charge
    return replace(SLOW, cases=cases, updates=int((budget - paid) / (SLOW.stages * SLOW.batch)))


@cache
def setting(arm: str) -> Any:
    """The rule's setting, as gate_rivals chose it; None for an arm without one."""
    if arm not in gate_rivals.RULES:
        return None
    stored = json.loads((RESULTS / "gate_rivals.json").read_text(encoding="utf-8"))["figures"]["settings"]
    return tuple(stored[arm])


def ends_on_tuning_roots(arm: str, charge: float) -> dict[int, float]:
    """By the number of cases; those that cannot be paid are left out."""
    variants = {cases: charged(arm, cases, charge) for cases in CASES}
    ends = {}
    for cases, variant in variants.items():
        if variant.updates > 0:
            runs = [Run(root, arm, setting(arm), seed) for root in TUNE for seed in range(TRAININGS)]
            ends[cases] = float(np.mean([row["end"] for row in gate.rows(variant, runs)]))
    return ends


def measure(arm: str, how: str) -> dict[str, Any]:
    """The arm on the fresh roots, with the number of cases that ends highest on the tuning roots."""
    tuning = ends_on_tuning_roots(arm, CHARGES[how])
    cases = max(tuning, key=lambda cases: tuning[cases])
    variant = charged(arm, cases, CHARGES[how])
    found = measured(variant, FRESH, TRAININGS, lambda root, seed: Run(root, arm, setting(arm), seed))
    return {"arm": arm, "charge": how, "cases": cases, "updates": variant.updates, "on_tuning_roots": tuning} | found


def line(row: dict[str, Any]) -> str:
    """A row of the page's table."""
    cells = [f"`{row['arm']}`", row["charge"], row["cases"], row["updates"], f"{100 * row['success']:.1f}"]
    cells += [in_points(row["over_best_open_loop"]), f"{100 * row['bound']:+.1f}"]
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    arguments = arguments_of(command(__doc__))
    torch.set_num_threads(1)
    rows = []
    for arm in REPORTS:
        for how in CHARGES:
            rows.append(measure(arm, how))
            print(line(rows[-1]), flush=True)
    fresh = {"variant": SLOW.name, "roots": FRESH, "training_seeds": TRAININGS}
    record_if_asked(arguments, "gate_cost", fresh | {"rows": rows})


if __name__ == "__main__":
    main()
