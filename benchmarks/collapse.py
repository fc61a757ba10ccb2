"""Does a long single stage collapse, and does the KL term prevent it? ``python -m benchmarks.collapse``, hours of CPU.

The paper ("Don't Just Fine-tune the Agent", figures 6 and 7): a single stage collapses at about 70 steps; with a KL weight of .001 or 0 entropy and
accuracy fall, with .1 they do not. Here: the small language model of ``tools-in-miniature``, one stage of all its tasks without hints, 150 optimiser steps
of GRPO with each weight, from one warm start.

Written before any run began. A weight has collapsed at the first step at which ``collapsed`` says so (entropy gone and gradient norm up), or at which
the mean reward of ten steps is below half of the best ten before it; otherwise it is "not seen in N steps". One seed: this can show a collapse, and cannot
show that there is none. The stage is cut into pieces of ten steps, which keep weights and optimiser, so an interrupted run loses at most one.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks._record import raise_unless_committed, record
from benchmarks.bfcl.text_table import aligned
from envtuning.loop.run import start
from envtuning.runs.log import RunLog
from envtuning.runs.spec import RunSpec, load_spec
from envtuning.trainees.language.collapse import collapsed

PRESET = "tools-in-miniature"
BETAS = (0.0, 0.001, 0.1)
STEPS = 150
PIECE = 10  # steps between two checkpoints, and the window of the mean reward
KEPT = ("reward", "entropy", "grad_norm", "kl", "equal_groups")


def spec_of(beta: float, model: Path, steps: int = STEPS) -> RunSpec:
    """The preset's last stage and nothing else, in pieces."""
    preset = load_spec(PRESET)
    grpo = preset.trainee.options["grpo"]
    batch = grpo["per_device_train_batch_size"] * grpo["gradient_accumulation_steps"]
    validated = preset.suites.validation_per_slice * len(preset.target["slices"])  # at each piece's end, samples too
    piece = {"name": "piece", "config": preset.stages[-1].config, "budget": PIECE * batch + validated}
    changes = {
        "stages": [piece] * -(-steps // PIECE),
        "trainee.options.model": str(model),
        "trainee.options.grpo.beta": beta,
    }
    return load_spec(PRESET, changes=changes)


def history(run: RunLog) -> list[dict[str, float]]:
    """Every optimiser step of all pieces, in order."""
    return [line for stage in run.state.done for line in stage.metrics() if line["kind"] == "iteration"]


def collapsed_at(steps: Sequence[dict[str, float]]) -> int | None:
    """The first step of a collapse, counted from 1, by the rule above; None where there is none."""
    rewards = [step["reward"] for step in steps]
    best = float("-inf")
    for end in range(1, len(steps) + 1):
        if collapsed(steps[:end]) is not None:
            return end
        if end >= PIECE:
            now = fmean(rewards[end - PIECE : end])
            if now < best / 2:
                return end
            best = max(best, now)
    return None


def row(beta: float, run: RunLog) -> dict[str, Any]:
    steps = history(run)
    return {
        "beta": beta,
        "steps": len(steps),
        "collapsed at": collapsed_at(steps),
        "progress of each piece's validation": [round(stage.done.metrics["progress"], 4) for stage in run.state.done],
    } | {name: [round(step[name], 4) for step in steps if name in step] for name in KEPT}


def table(figures: dict[str, Any]) -> str:
    head = ["KL weight", "steps", "collapsed at", "reward, first and last ten", "entropy, first and last ten"]
    rows = []
    for one in figures["rows"]:
        ends = [f"{fmean(one[name][:PIECE]):.3f}, {fmean(one[name][-PIECE:]):.3f}" for name in ("reward", "entropy")]
        seen = "not seen" if one["collapsed at"] is None else str(one["collapsed at"])
        rows.append([f"{one['beta']:g}", str(one["steps"]), seen, *ends])
    return aligned(head, rows)


def main() -> None:
    from envtuning.cli.pretraining import pretrain_for

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=STEPS, help="optimiser steps of each weight")
    parser.add_argument("--out", type=Path, default=Path("runs/collapse"), help="folder of the model and the runs")
    parser.add_argument("--no-record", action="store_true", help="print only")
    arguments = parser.parse_args()
    if not arguments.no_record:
        raise_unless_committed()
    model = arguments.out / "model"
    if not model.exists():
        pretrain_for(load_spec(PRESET), model)
    rows = []
    for beta in BETAS:
        run = start(spec_of(beta, model, arguments.steps), arguments.out / f"{arguments.steps}-steps-beta-{beta:g}")
        rows.append(row(beta, run))
        print(table({"rows": rows[-1:]}), flush=True)
    if not arguments.no_record:
        print(record("collapse", {"preset": PRESET, "rows": rows}))


if __name__ == "__main__":
    main()
