"""The mean outcomes of an engineer's own runs, for a study's `average` arm: ``python -m benchmarks.average_self small-corridors``.

The engineer runs on development seeds, without a test, and validated on boards that the study does not use. The mean outcomes of these
runs, stage by stage, are kept beside the preregistered studies: ``average/ENGINEER`` reads them in place of a run's own.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks._record import conditions, raise_unless_committed
from benchmarks.search_schedule import development
from benchmarks.store import HERE
from engineers.controls import mean_run, save_run
from envtuning.runs.log import RunLog
from envtuning.runs.spec import EngineerSpec
from envtuning.show.terminal import make_console
from envtuning.studies.preregistered import ArmSpec, arm_of
from envtuning.studies.study import execute, folder_name

SEEDS = range(100, 105)  # of development: no study has them


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("preset", help="the target, its budget and its stages")
    parser.add_argument("--engineer", default="rules", help="whose reports (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="how many runs at a time")
    parser.add_argument("--out", type=Path, default=Path("runs/average"), help="folder of the runs")
    arguments = parser.parse_args()
    raise_unless_committed()
    arm = arm_of(development(arguments.preset), ArmSpec(engineer=EngineerSpec(name=arguments.engineer)))
    out = arguments.out / arguments.preset
    execute({arguments.engineer: arm}, SEEDS, out, jobs=arguments.jobs)
    runs = [RunLog.open(out / folder_name(arguments.engineer) / f"seed{seed}") for seed in SEEDS]
    reports = [[stage.report for stage in run.state.done if stage.report is not None] for run in runs]
    path = HERE / "average" / f"{arguments.preset}-{arguments.engineer}.json"
    path.parent.mkdir(exist_ok=True)
    save_run(path, mean_run(reports), made_by=conditions(), seeds=list(SEEDS))
    make_console().print(f"reports: {path}", highlight=False)


if __name__ == "__main__":
    main()
