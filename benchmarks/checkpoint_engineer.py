"""Does a trained checkpoint write a better config than its base? ``python -m benchmarks.checkpoint_engineer --run RUN --model FOLDER``.

Written before the first question was asked. RUN is a finished run of ``benchmarks.real_skills``: Qwen2.5-Coder-0.5B, trained by reward on eighteen tasks.
Its last checkpoint and FOLDER, the model that it began with, are asked for the next config by the shipped prompt and answer format. Both read
the same two reports, those after the second and the fifth stage, and answer each three times, with other random numbers. They may ask again after
a refusal, as in a run.

Better means: more of the data goes to tasks that succeeded in 10 to 90 % of training's replies in that stage, because only these teach by reward. An
answer that is refused, or changes nothing, leaves the shares as they are.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import engineers
from benchmarks._command import arguments_of, command, record_if_asked
from benchmarks.small_skills import weights_of
from engineers.knobs import changes
from engineers.report import StageReport
from engineers.roles import shares_in
from envtuning.runs.log import RunLog

AFTER = (1, 4)  # stages, the first is 0
ANSWERS = 3
TEACHES = (0.1, 0.9)  # success in training


def part_that_teaches(shares: Mapping[str, float], report: StageReport) -> float:
    """Of the data: that of tasks with a success between the two bounds."""
    low, high = TEACHES
    rates = {row.name: row.rate(report.objective) for row in report.training_results if row.episodes}
    middle = {name for name, rate in rates.items() if rate is not None and low <= rate <= high}
    return sum(share for name, share in shares.items() if name in middle) / sum(shares.values())


def asked(weights: Path, run: RunLog, stage: int, seed: int, transcript: Path) -> dict[str, Any]:
    """One answer to a stage's report."""
    done = run.state.done[stage]
    assert done.report is not None, "a stage that is done has a report"
    before, begun = done.chosen.config, time.process_time()
    engineer = engineers.make(f"local/{weights}", seed=seed, transcript=transcript, timeout=None)
    proposal = engineer.propose(done.report, before, run.plan.spec.editable)
    return {
        "after_stage": stage + 1,
        "answer": seed,
        "changes": len(changes(before, proposal.config)),
        "refused": proposal.fallback,
        "before": part_that_teaches(shares_in(before), done.report),
        "after": part_that_teaches(shares_in(proposal.config), done.report),
        "cpu_seconds": round(time.process_time() - begun, 1),
    }


def main() -> None:
    parser = command(__doc__)
    parser.add_argument("--run", required=True, type=Path, help="a finished run of benchmarks.real_skills")
    parser.add_argument("--model", required=True, type=Path, help="the folder that it began with")
    parser.add_argument("--out", type=Path, default=Path("runs/checkpoint-engineer"), help="folder of the transcripts")
    arguments = arguments_of(parser)
    run = RunLog.open(arguments.run)
    spec = run.plan.spec
    figures: dict[str, Any] = {
        "run": {
            "engineer": spec.engineer.name,
            "refill": spec.trainee.options.get("refill", 0),
            "seed": spec.seed,
            "learning rate": spec.trainee.options["grpo"]["learning_rate"],
        }
    }
    for who, weights in {"base": arguments.model, "checkpoint": run.state.done[-1].checkpoint}.items():
        rows = []
        for stage in AFTER:
            for seed in range(ANSWERS):
                rows.append(asked(weights.absolute(), run, stage, seed, arguments.out / f"{who}.jsonl"))
                print(who, rows[-1], flush=True)
        figures[who] = {"mean_after": fmean(row["after"] for row in rows), "answers": rows}
    record_if_asked(arguments, "checkpoint_engineer", {"weights": weights_of(arguments.model)} | figures)


if __name__ == "__main__":
    main()
