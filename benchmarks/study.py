"""A preregistered study: run what is not finished, then its table: ``python -m benchmarks.study corridors --jobs 2``.

The files are in ``benchmarks/preregistered``. ``--arms`` and ``--seeds`` do a part of it, ``--table`` runs nothing. The table holds
whatever is finished and says what is not; it goes to ``benchmarks/results`` as JSON, with the commits that the runs were made
by, and as Markdown. A study of your own is ``envtuning study FILE``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks._record import RESULTS, conditions, raise_unless_committed, record
from benchmarks.study_figure import draw
from envtuning.runs.spec import SpecError
from envtuning.show.console import make_console
from envtuning.studies.outcomes import finished
from envtuning.studies.pace import Pace
from envtuning.studies.preregistered import StudySpec, load_study, part_of, seeds_of
from envtuning.studies.study import Job, execute, is_done, plan
from envtuning.studies.summary import as_json, markdown, summarise

HERE = Path(__file__).parent / "preregistered"
COMMITS = "commits.txt"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", choices=sorted(path.stem for path in HERE.glob("*.yaml")))
    parser.add_argument("--arms", help="only these arms, separated by commas")
    parser.add_argument("--seeds", help="only these of its seeds, separated by commas")
    parser.add_argument("--jobs", type=int, default=1, help="how many runs at a time")
    parser.add_argument("--out", type=Path, default=Path("runs/studies"), help="folder of all studies' runs")
    parser.add_argument("--table", action="store_true", help="run nothing, only draw up the table")
    arguments = parser.parse_args()
    console = make_console()
    try:
        study = load_study(HERE / f"{arguments.study}.yaml")
        wanted = part_of(study, arguments.arms)
        seeds = seeds_of(study, arguments.seeds)
    except SpecError as error:
        parser.error(str(error))
    out = arguments.out / study.name
    raise_unless_committed()
    if not arguments.table:
        here = str(conditions()["commit"])  # the code that is loaded, wherever the checkout goes meanwhile
        if any(not is_done(job) for job in plan(wanted, seeds, out)):
            remember_commit(out, here)

        def ended(job: Job, pace: Pace) -> None:
            remember_commit(out, here, job.folder.relative_to(out).as_posix())
            console.print(f"finished {job.folder} ({pace})")

        execute(wanted, seeds, out, jobs=arguments.jobs, ended=ended)
    console.print(f"figures: {store(study, out)}")


def store(study: StudySpec, out: Path) -> Path:
    """The table of what is finished and its picture, among the results that pages may claim; returns the JSON's path."""
    summary = summarise(study, out)
    path = RESULTS / f"study_{study.name}.md"
    draw(summary, study, finished(study.specs(), study.seeds, out), path.with_suffix(".png"))
    path.write_text(markdown(summary), encoding="utf-8")
    made_by = {"runs_made_by_commits": commits(out), "commits_of_runs": commits_of_runs(out)}
    return record(path.stem, as_json(summary) | made_by)


def remember_commit(out: Path, commit: str, run: str = "") -> None:
    """A study may be run in many sittings: each leaves its commit when it begins, and once more with every run that it ends."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / COMMITS).open("a", encoding="utf-8") as file:
        file.write(f"{commit} {run}".rstrip() + "\n")


def commits(out: Path) -> list[str]:
    """Every commit that runs of this folder were made by."""
    return list(dict.fromkeys(line[0] for line in _lines(out)))


def commits_of_runs(out: Path) -> dict[str, str]:
    """The commit by each run, where it is known: folders of before have one line for a sitting, and no run in it."""
    return {line[1]: line[0] for line in _lines(out) if len(line) > 1}


def _lines(out: Path) -> list[list[str]]:
    file = out / COMMITS
    return [line.split() for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


if __name__ == "__main__":
    main()
