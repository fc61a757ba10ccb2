"""A tiny language model: taught ground-truth calls, then two GRPO steps in each of the preset's four stages.

It shows that this works: rewards differ within groups, and gradients are finite. It is not a result on the benchmark.
"""

from __future__ import annotations

import math
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.bfcl.text_table import aligned
from envtuning.loop.run import start
from envtuning.runs.log import RunLog
from envtuning.runs.spec import load_spec
from envtuning.worlds.bfcl.package import Version

PRESET = "tools-in-miniature"


def run(version: Version) -> dict[str, Any]:
    """What ``envtuning pretrain --for`` and ``envtuning run`` do for the preset, with the CPU seconds of each."""
    from envtuning.cli.pretraining import pretrain_for

    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        world = {"name": "tools", "options": {"version": version}}
        spec = load_spec(PRESET, changes={"world": world, "trainee.options.model": str(model)})
        began = time.process_time()
        pretrain_for(spec, model)
        taught = time.process_time()
        done = start(spec, Path(folder) / "run")
        return {
            "version": version,
            "cpu_seconds": {"pretraining": round(taught - began), "four stages": round(time.process_time() - taught)},
            "stages": [stage_row(done, number) for number in range(len(done.state.done))],
        }


def stage_row(run: RunLog, number: int) -> dict[str, Any]:
    """A stage's steps: the part of groups whose replies were not all paid alike, and the gradient's norm, step by step."""
    steps = [line for line in run.state.stages[number].metrics() if line["kind"] == "iteration"]
    return {
        "name": run.plan.spec.stages[number].name,
        "steps": len(steps),
        "groups_with_variance": [round(1 - step["equal_groups"], 4) for step in steps],
        "grad_norm": [round(step["grad_norm"], 4) for step in steps],
        "finite": all(math.isfinite(step["grad_norm"]) and math.isfinite(step["loss"]) for step in steps),
    }


def table(figures: dict[str, Any]) -> str:
    rows = [
        [
            stage["name"],
            str(stage["steps"]),
            ", ".join(f"{100 * part:.0f} %" for part in stage["groups_with_variance"]),
            ", ".join(f"{norm:.2f}" for norm in stage["grad_norm"]),
        ]
        for stage in figures["stages"]
    ]
    took = figures["cpu_seconds"]
    return "\n\n".join(
        [
            aligned(["stage", "steps", "groups with variance", "gradient norm"], rows),
            f"CPU seconds: {took['pretraining']} to make and teach the model, {took['four stages']} for the four stages",
        ]
    )
