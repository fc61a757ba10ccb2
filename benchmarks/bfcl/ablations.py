"""The four stages, and the same without each of their parts: the preset at its full budgets, with one run for each switch.

The trainee chooses from menus with the right call on them. The rows show what the switches do to a policy that really learns; they
are not results on the benchmark, and one run each does not show how far they vary.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bfcl.baselines import shown
from benchmarks.bfcl.text_table import aligned, ranged
from envtuning.loop.run import start
from envtuning.runs.log import RunLog
from envtuning.runs.spec import RunSpec, load_spec
from envtuning.trainees.menu import SIZE, MenuPolicy
from envtuning.worlds.bfcl.package import SPLITS, Version
from envtuning.worlds.bfcl.scripted import DONE
from envtuning.worlds.bfcl.tasks import scenario_of

PRESET = "environment-tuning-tools"
WHOLE_BUDGET = sum(stage.budget for stage in load_spec(PRESET).stages)
ALL_TASKS = {"tool_style": "menu", "slices": {split: {} for split in SPLITS}}

# What `envtuning run environment-tuning-tools --set KEY=VALUE` takes for each.
SWITCHES: dict[str, dict[str, Any]] = {
    "four stages": {},
    "no feedback": {"stages.1.config.feedback": "standard", "stages.2.config.feedback": "standard"},
    "binary reward": {f"stages.{number}.config.reward": "binary" for number in (1, 2, 3)},
    "single stage": {"stages": [{"name": "single", "budget": WHOLE_BUDGET, "config": ALL_TASKS}]},
    "no KL": {"trainee.options.kl": 0.0},
}


def run(version: Version, out: str = "runs/ablations") -> dict[str, Any]:
    """Every arm's stages and its last policy on the test; beside them a policy that says nothing and the untrained one."""
    rows = {name: arm(version, Path(out) / name.replace(" ", "-"), changes) for name, changes in SWITCHES.items()}
    first = RunLog.open(Path(out) / "four-stages")
    return {
        "version": version,
        "test": {
            "no-op": tested(first, lambda text: DONE),
            "untrained": tested(first, MenuPolicy(np.zeros(SIZE), draw=True)),
        }
        | {name: row.pop("test") for name, row in rows.items()},
        "runs": rows,
    }


def spec_of(version: Version, changes: dict[str, Any]) -> RunSpec:
    return load_spec(PRESET, changes={"world": {"name": "tools", "options": {"version": version}}} | changes)


def arm(version: Version, folder: Path, changes: dict[str, Any]) -> dict[str, Any]:
    """One run to its end; one that is finished is read."""
    done = start(spec_of(version, changes), folder)
    return {
        "changes": changes,
        "stages": [stage_row(done, number) for number in range(len(done.state.done))],
        "test": tested(done, last_policy(done)),
    }


def last_policy(run: RunLog) -> MenuPolicy:
    """Of the last stage's checkpoint."""
    return MenuPolicy(np.load(run.state.done[-1].checkpoint / "weights.npy"))


def stage_row(run: RunLog, number: int) -> dict[str, Any]:
    """Why a stage ended, what it took, and the closing validation on the target's tasks, with the stage's feedback."""
    done = run.state.stages[number].done
    assert done is not None
    validated = {name: round(value, 4) for name, value in done.metrics.items()}
    return {"ended": done.reason, "episodes": done.spent["episodes"], "validation": validated}


def table(figures: dict[str, Any]) -> str:
    rates = list(figures["test"]["no-op"])
    rows = [[name, *(ranged(*row[rate]) for rate in rates)] for name, row in figures["test"].items()]
    return aligned(["test, 95 % intervals over scenarios", *rates], rows)


def tested(run: RunLog, policy: Any) -> dict[str, list[float]]:
    """Mean and 95 % interval over scenarios of each score on the run's test."""
    cases = run.cases("test")
    episodes = run.plan.world.play(policy, cases, run.plan.target, seed=0)
    scenarios = [scenario_of(cases.ids[episode.case]) for episode in episodes]
    names = ("success_rate", "progress", "syntax")
    return {name: shown([episode.metrics[name] for episode in episodes], scenarios) for name in names}
