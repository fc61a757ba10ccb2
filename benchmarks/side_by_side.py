"""Parallel runs against runs one after the other, with the same figures: ``python -m benchmarks.side_by_side``.

It measures wall time, so nothing else should run on the machine; the initial load is stored with the figures.
Each way starts in an empty folder; its times include imports and compilation in every process, as for a user.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks._record import record
from envtuning.runs.log import RunLog
from envtuning.studies.study import run_folders

COMPARED = ("test.json", "stages/*/config.json", "stages/*/episodes.json", "stages/*/metrics.jsonl")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="small-corridors")
    parser.add_argument("--engineers", default="uniform,rules")
    parser.add_argument("--seeds", default="2", help="a number of seeds, or a list (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as scratch:
        one, many = Path(scratch) / "one", Path(scratch) / "many"
        seconds = {jobs: timed(arguments, jobs, out) for jobs, out in ((1, one), (arguments.jobs, many))}
        same = outcome(one) == outcome(many)
        steps = sum(RunLog.open(folder).state.spent["env_steps"] for folder in run_folders(one))
        runs = len(run_folders(one))
    found = {
        "preset": arguments.preset,
        "runs": runs,
        "steps": steps,
        "load_before": round(load, 2),
        "seconds_one_after_the_other": round(seconds[1], 1),
        f"seconds_with_{arguments.jobs}_jobs": round(seconds[arguments.jobs], 1),
        "times_as_fast": round(seconds[1] / seconds[arguments.jobs], 2),
        "same_figures": same,
    }
    print(found)
    print(f"figures: {record('side_by_side', found)}")


def timed(arguments: argparse.Namespace, jobs: int, out: Path) -> float:
    command = [
        sys.executable,
        "-m",
        "envtuning",
        "compare",
        arguments.preset,
        "--engineers",
        arguments.engineers,
    ]
    begin = time.perf_counter()
    subprocess.run([*command, "--seeds", arguments.seeds, "--jobs", str(jobs), "--out", str(out)], check=True)
    return time.perf_counter() - begin


def outcome(out: Path) -> dict[str, bytes]:
    """Every file that says what came of the runs."""
    return {
        str(file.relative_to(out)): file.read_bytes()
        for run in run_folders(out)
        for pattern in COMPARED
        for file in run.glob(pattern)
    }


if __name__ == "__main__":
    main()
