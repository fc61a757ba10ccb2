"""The preset's four stages once, whole, as ``envtuning run`` runs them: how long each takes, what it learns, the test at the end."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.bfcl.baselines import shown
from benchmarks.bfcl.text_table import aligned, ranged
from benchmarks.bfcl.trained import last_policy, spec_of, stage_row
from envtuning.loop.run import start
from envtuning.runs.log import RunLog
from envtuning.worlds.bfcl.package import Version
from envtuning.worlds.bfcl.scripted import DONE
from envtuning.worlds.bfcl.tasks import scenario_of


def run(version: Version) -> dict[str, Any]:
    """CPU seconds of the run from its spec to its test; after it a policy that says nothing on the same test."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        done = start(spec_of(version, {}), Path(folder) / "run")
        took = time.process_time() - began
        return {
            "version": version,
            "cpu_seconds": round(took, 1),
            "stages": [named_row(done, number) for number in range(len(done.state.done))],
            "test": {"no-op": tested(done, lambda text: DONE), "after the last stage": tested(done, last_policy(done))},
        }


def named_row(run: RunLog, number: int) -> dict[str, Any]:
    return {"name": run.plan.spec.stages[number].name} | stage_row(run, number)


def tested(run: RunLog, policy: Any) -> dict[str, list[float]]:
    """Mean and 95 % interval over scenarios of each score on the run's test."""
    cases = run.cases("test")
    episodes = run.plan.world.play(policy, cases, run.plan.target, seed=0)
    scenarios = [scenario_of(cases.ids[episode.case]) for episode in episodes]
    names = ("success_rate", "progress", "syntax")
    return {name: shown([episode.metrics[name] for episode in episodes], scenarios) for name in names}


def table(figures: dict[str, Any]) -> str:
    rates = list(figures["stages"][0]["validation"])
    stages = [
        [stage["name"], f"{stage['episodes']:,}", *(f"{stage['validation'][rate]:.3f}" for rate in rates)]
        for stage in figures["stages"]
    ]
    return "\n\n".join(
        [
            aligned(["stage, validated at its end", "episodes", *rates], stages),
            test_table(figures["test"]),
            f"{figures['cpu_seconds']:.0f} seconds of CPU",
        ]
    )


def test_table(rows: dict[str, Any]) -> str:
    rates = list(rows["no-op"])
    lines = [[name, *(ranged(*row[rate]) for rate in rates)] for name, row in rows.items()]
    return aligned(["test, 95 % intervals over scenarios", *rates], lines)
