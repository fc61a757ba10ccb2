"""The mean outcomes of an engineer's own runs, for a study's `average` arm: ``python -m benchmarks.average_self small-corridors``.

The engineer runs on development seeds, without a test, and validated on boards that the study does not use. The mean outcomes of these
runs, stage by stage, are kept beside the preregistered studies: ``average/ENGINEER`` reads them in place of a run's own.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks._record import conditions, raise_unless_committed
from benchmarks.search_schedule import development
from benchmarks.store import HERE
from engineers.controls import TABLES
from engineers.report import SliceResult, Split, StageReport
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


def save_run(path: Path, run: Sequence[StageReport], **made_by: Any) -> None:
    """Reports for ``average/ENGINEER`` to read, with how they were made."""
    reports = [report.model_dump(mode="json") for report in run]
    path.write_text(json.dumps({**made_by, "reports": reports}, indent=1) + "\n", encoding="utf-8")


def mean_run(runs: Sequence[Sequence[StageReport]]) -> list[StageReport]:
    """One report a stage: the mean outcomes over the runs, as far as the shortest goes. Shows no failed case."""
    return [_mean(reports) for reports in zip(*runs, strict=False)]


def _mean(reports: Sequence[StageReport]) -> StageReport:
    return reports[0].model_copy(
        update={
            **{name: _mean_rows([getattr(report, name) for report in reports]) for name in TABLES},
            "failure_cases": [],
            "behaviour": {
                name: _mean_numbers([report.behaviour[name] for report in reports if name in report.behaviour])
                for name in dict.fromkeys(name for report in reports for name in report.behaviour)
            },
            "splits": _mean_splits([report.splits for report in reports]),
            "training": _mean_training([report.training for report in reports]),
            "history": [],
        }
    )


def _mean_rows(tables: Sequence[Sequence[SliceResult]]) -> list[SliceResult]:
    names = dict.fromkeys(row.name for table in tables for row in table)
    return [_mean_row([row for table in tables for row in table if row.name == name]) for name in names]


def _mean_row(rows: Sequence[SliceResult]) -> SliceResult:
    kinds = dict.fromkeys(kind for row in rows for kind in row.failures)
    return SliceResult(
        name=rows[0].name,
        episodes=round(fmean(row.episodes for row in rows)),
        metrics=_mean_numbers([row.metrics for row in rows]),
        failures={kind: round(fmean(row.failures.get(kind, 0) for row in rows)) for kind in kinds},
    )


def _mean_splits(tables: Sequence[Mapping[str, Mapping[str, Split]]]) -> dict[str, dict[str, Split]]:
    """The parts that all runs have, with the mean of their counts, rounded."""
    shared = [name for name in tables[0] if all(name in table for table in tables)]
    return {
        name: {
            part: Split(
                episodes=round(fmean(table[name][part].episodes for table in tables)),
                succeeded=round(fmean(table[name][part].succeeded for table in tables)),
            )
            for part in tables[0][name]
            if all(part in table[name] for table in tables)
        }
        for name in shared
    }


def _mean_numbers(tables: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for table in tables for name in table)
    return {name: fmean(table[name] for table in tables if name in table) for name in names}


def _mean_training(tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Numbers, and curves point by point as far as the shortest goes."""
    numbers = [{name: v for name, v in table.items() if isinstance(v, int | float)} for table in tables]
    curves: dict[str, list[Sequence[float]]] = {}
    for table in tables:
        for name, value in table.items():
            if isinstance(value, list):
                curves.setdefault(name, []).append(value)
    return _mean_numbers(numbers) | {
        name: [fmean(point) for point in zip(*found, strict=False)] for name, found in curves.items()
    }


if __name__ == "__main__":
    main()
