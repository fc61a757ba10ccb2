"""A preregistered study: run what is not finished, then its table: ``python -m benchmarks.study corridors --jobs 2``.

The files are in ``benchmarks/preregistered``. ``--arms`` and ``--seeds`` do a part of it; the table holds whatever is finished,
and says what is not.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from envtuning.cli import parse_seeds
from envtuning.show.console import ConsoleObserver, make_console
from envtuning.studies.preregistered import load_study
from envtuning.studies.study import execute

HERE = Path(__file__).parent / "preregistered"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "study", help=f"one of {', '.join(sorted(path.stem for path in HERE.glob('*.yaml')))}, or a file"
    )
    parser.add_argument("--arms", help="only these arms, separated by commas")
    parser.add_argument("--seeds", help="only these seeds: a list such as 1000,1001")
    parser.add_argument("--jobs", type=int, default=1, help="how many runs at a time")
    parser.add_argument("--out", type=Path, default=Path("runs/studies"), help="folder of all studies' runs")
    arguments = parser.parse_args()
    console = make_console()
    named = HERE / f"{arguments.study}.yaml"
    study = load_study(named if named.exists() else arguments.study)
    arms = study.specs()
    wanted = [name for name in arms if arguments.arms is None or name in arguments.arms.split(",")]
    seeds = parse_seeds(arguments.seeds) if arguments.seeds else study.seeds
    observer = ConsoleObserver(console) if arguments.jobs == 1 else None
    execute(
        {name: arms[name] for name in wanted}, seeds, arguments.out / study.name, jobs=arguments.jobs, observer=observer
    )


if __name__ == "__main__":
    main()
