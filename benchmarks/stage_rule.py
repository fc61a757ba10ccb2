"""Does the rule of convergence and a stable gradient norm end the stages? ``python -m benchmarks.stage_rule lakes`` or ``tools``.

The presets' budgets end most stages before their rule does. Here each stage that has a rule may take four times its budget, and the table says what
ended it and when; the last stage has none and is left out, since all that the others saved would be its. One run each, of a preset's own seed: it shows that the rule can end stages, not that it ends them well. An interrupted run continues.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from benchmarks._record import raise_unless_committed, record
from benchmarks.bfcl.text_table import aligned
from benchmarks.bfcl.trained import FOUR_STAGES
from envtuning.loop.run import continue_run, create
from envtuning.runs.log import RunLog
from envtuning.runs.spec import RunSpec, load_spec

PRESETS = {"lakes": "environment-tuning", "tools": str(FOUR_STAGES)}
TIMES = 4  # a ruled stage's budget, in the preset's


def spec_of(name: str) -> RunSpec:
    """The preset with room for its rules."""
    stages = load_spec(PRESETS[name], trust=["benchmarks"]).stages
    changes = {f"stages.{n}.budget": TIMES * stage.budget for n, stage in enumerate(stages) if stage.advance_when}
    return load_spec(PRESETS[name], changes=changes, trust=["benchmarks"])


def done_by(folder: Path, spec: RunSpec) -> RunLog:
    """The run up to its last stage that has a rule; one that is there already is continued."""
    run = create(folder, spec)
    continue_run(run, stages=sum(stage.advance_when is not None for stage in spec.stages))
    return run


def rows(run: RunLog) -> list[dict[str, Any]]:
    """What ended each stage, after how much of its budget, and the validations that it was decided by."""
    unit, objective = run.plan.unit, run.plan.world.about.objective
    found = []
    for listed, stage in zip(run.plan.spec.stages, run.state.done):
        assert stage.done is not None
        lines = [line for line in stage.metrics() if line["kind"] == "validation"]
        found.append(
            {
                "name": listed.name,
                "budget": listed.budget,
                "spent": stage.done.spent[unit],
                "ended": stage.done.reason,
                "validations": [round(line[objective], 4) for line in lines],
            }
        )
    return found


def by_its_rule(row: dict[str, Any]) -> bool:
    return not row["ended"].startswith("the budget of")


def table(figures: dict[str, Any]) -> str:
    head = ["stage", "budget", "spent", "ended by its rule"]
    return aligned(
        head,
        [
            [row["name"], f"{row['budget']:,}", f"{row['spent']:,}", "yes" if by_its_rule(row) else "no"]
            for row in figures["stages"]
        ],
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("world", choices=PRESETS)
    parser.add_argument("--out", type=Path, default=Path("runs/stage-rule"), help="folder of the runs")
    arguments = parser.parse_args()
    raise_unless_committed()
    done = done_by(arguments.out / arguments.world, spec_of(arguments.world))
    figures = {"preset": done.plan.spec.name, "unit": done.plan.unit, "stages": rows(done)}
    print(table(figures))
    print(record(f"stage_rule_{arguments.world}", figures))


if __name__ == "__main__":
    main()
