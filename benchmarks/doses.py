"""How the gate's transformer learns a task with more data, and forgets it without: ``python -m benchmarks.doses``.

Lacking tasks get one, two and three times their even share in every stage; the other tasks get the rest. The parameters' ranges of
the families in ``benchmarks.closed_form`` include the results.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from benchmarks import gate
from benchmarks._command import arguments_of, command, record_if_asked

DOSES = (1, 2, 3)
GRID = np.linspace(0.02, 2.0, 100)


def measured(variant: gate.Variant) -> dict[str, Any]:
    """Success by stage, and the best fits: wait and time in parts of the run under even draws, forgetting by stage."""
    gate.ARMS["dose"] = (lambda dose, seen: np.where(seen.tasks.kind == gate.LACKING, dose, (3 - dose) / 2), (None,))
    found = {dose: gate.play(variant, [gate.Run(root, "dose", dose) for root in gate.DEVELOP]) for dose in DOSES}
    fits: dict[str, list[float]] = {"wait": [], "time": [], "forgetting": []}
    for runs in zip(*found.values(), strict=True):
        kind, success = runs[0].tasks.kind, np.array([run.success for run in runs])  # [doses, stages, tasks]
        for task in np.flatnonzero(kind == gate.LACKING):
            wait, rise = learnt(success[:, :, task], variant.stages)
            fits["wait"].append(wait)
            fits["time"].append(rise)
        fits["forgetting"] += [forgotten(success[-1, :, task]) for task in np.flatnonzero(kind == gate.MASTERED)]
    curves = {
        name: [np.mean([np.array(run.success)[:, run.tasks.kind == of].mean(1) for run in found[dose]], 0).round(4).tolist() for dose in DOSES]
        for of, name in enumerate(gate.KINDS)
    }  # fmt: skip
    spread = {name: np.quantile(values, [0.05, 0.5, 0.95]).round(2).tolist() for name, values in fits.items()}
    return {"variant": variant.name, "roots": gate.DEVELOP, "success_by_dose_and_stage": curves, "fits": spread}


def learnt(success: np.ndarray, stages: int) -> tuple[float, float]:
    """The wait and the time of the S that comes nearest to a task's success, [doses, stages]."""
    spent = np.outer(DOSES, np.arange(stages + 1)) / stages
    wait, rise = (axis[..., None, None] for axis in np.meshgrid(GRID, GRID))
    off = (-np.expm1(-np.square(np.maximum(spent - wait, 0) / rise)) - success) ** 2
    best = np.unravel_index(off.sum((2, 3)).argmin(), off.shape[:2])
    return float(wait[best].item()), float(rise[best].item())


def forgotten(success: np.ndarray) -> float:
    """How much of a mastered task's practice a stage without data takes."""
    kept = np.sqrt(-np.log1p(-min(success[0], 0.98))) * np.exp(-np.outer(GRID, np.arange(len(success))))
    return float(GRID[((-np.expm1(-np.square(kept)) - success) ** 2).sum(1).argmin()])


def main() -> None:
    arguments = arguments_of(command(__doc__))
    torch.set_num_threads(1)
    figures = measured(gate.SLOW)
    print(figures["fits"])
    record_if_asked(arguments, "doses", figures)


if __name__ == "__main__":
    main()
