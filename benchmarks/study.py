"""A preregistered study: run what is not finished, then its table: ``python -m benchmarks.study corridors --jobs 2``.

The files are in ``benchmarks/preregistered``. ``--arms`` and ``--seeds`` do a part of it, ``--table`` runs nothing. The table holds
whatever is finished and says what is not; it goes to ``benchmarks/results`` as JSON, with the commits that the runs were made
by, and as Markdown.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks._record import RESULTS, conditions, record
from benchmarks.study_figure import draw
from envtuning.cli import parse_seeds
from envtuning.show.console import make_console
from envtuning.studies.outcomes import finished
from envtuning.studies.preregistered import StudySpec, load_study
from envtuning.studies.study import execute
from envtuning.studies.summary import as_json, markdown, summarise

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
    parser.add_argument("--table", action="store_true", help="run nothing, only draw up the table")
    arguments = parser.parse_args()
    console = make_console()
    named = HERE / f"{arguments.study}.yaml"
    study = load_study(named if named.exists() else arguments.study)
    out = arguments.out / study.name
    if not arguments.table:
        arms = study.specs()
        wanted = {name: arms[name] for name in arms if arguments.arms is None or name in arguments.arms.split(",")}
        seeds = parse_seeds(arguments.seeds) if arguments.seeds else study.seeds
        remember_commit(out)
        execute(wanted, seeds, out, jobs=arguments.jobs, ended=lambda job: console.print(f"finished {job.folder}"))
    console.print(f"figures: {write_up(study, out)}", highlight=False)


def write_up(study: StudySpec, out: Path) -> Path:
    """The table of what is finished, stored; returns the JSON's path."""
    summary = summarise(study, out)
    draw(summary, study, finished(study.specs(), study.seeds, out), RESULTS / f"study_{study.name}.png")
    (RESULTS / f"study_{study.name}.md").write_text(markdown(summary), encoding="utf-8")
    return record(f"study_{study.name}", as_json(summary) | {"runs_made_by_commits": commits(out)})


def remember_commit(out: Path) -> None:
    """A study may be run in many sittings: each leaves the commit that it was run by."""
    here = str(conditions()["commit"])
    if here not in commits(out):
        out.mkdir(parents=True, exist_ok=True)
        with (out / "commits.txt").open("a", encoding="utf-8") as file:
            file.write(here + "\n")


def commits(out: Path) -> list[str]:
    file = out / "commits.txt"
    return file.read_text(encoding="utf-8").split() if file.exists() else []


if __name__ == "__main__":
    main()
