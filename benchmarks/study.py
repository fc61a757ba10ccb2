"""A preregistered study: do its unfinished runs and write its table: ``python -m benchmarks.study corridors --jobs 2``.

The files are in ``benchmarks/preregistered``. ``--arms`` and ``--seeds`` do a part of it, ``--table`` runs nothing. The table holds
whatever is finished and says what is not; it goes to ``benchmarks/results`` as JSON, with the commits that the runs were made
by, and as Markdown. Stored outcomes of runs whose folders are not here stay in it, so that an arm can be added later. ``--redraw``
makes the table of the stored outcomes again, without the runs. A study of your own is ``envtuning study FILE``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import readme
from benchmarks._record import RESULTS, conditions, raise_unless_committed, record
from benchmarks.study_figure import draw
from envtuning.cli.arguments import listed_seeds
from envtuning.runs.spec import SpecError
from envtuning.show.pace import Pace
from envtuning.show.terminal import make_console
from envtuning.studies.intervals import Interval
from envtuning.studies.outcomes import Outcome, finished
from envtuning.studies.preregistered import StudySpec, load_study, part_of, seeds_of
from envtuning.studies.study import Job, execute, is_done, plan
from envtuning.studies.summary import Summary, markdown, summarise, summary_of

HERE = Path(__file__).parent / "preregistered"
COMMITS = "commits.txt"
# Entries of a stored study beside its summary. The last one is there if arms or seeds were added to it.
MADE_BY = ("runs_made_by_commits", "commits_of_runs", "added_to")
SITTING = ("recorded", "command", "commit", "cpu_minutes")  # of ``benchmarks._record.conditions``


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", choices=sorted(path.stem for path in HERE.glob("*.yaml")))
    parser.add_argument("--arms", help="only these arms, separated by commas")
    parser.add_argument("--seeds", help="only these of its seeds, separated by commas")
    parser.add_argument("--jobs", type=int, default=1, help="how many runs at a time")
    parser.add_argument("--out", type=Path, default=Path("runs/studies"), help="folder of all studies' runs")
    parser.add_argument("--table", action="store_true", help="run nothing, only draw up the table")
    parser.add_argument("--redraw", action="store_true", help="the table of the outcomes that are stored")
    arguments = parser.parse_args()
    console = make_console()
    try:
        study = load_study(HERE / f"{arguments.study}.yaml")
        wanted = part_of(study, arguments.arms)
        seeds = seeds_of(study, listed_seeds(arguments.seeds))
    except SpecError as error:
        parser.error(str(error))
    if arguments.redraw:
        redraw(study)
        return
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
    summary, path = summarise(study, out), stored_at(study)
    made_by = dict(zip(MADE_BY, (commits(out), commits_of_runs(out)), strict=False))
    stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"figures": {"runs": [], "beyond": {}}}
    figures = stored["figures"]
    if elsewhere := made_elsewhere(figures, summary):  # the picture stays: its curves are in the runs' folders alone
        summary, made_by = with_stored(study, figures, elsewhere, summary), added_to(stored, made_by)
    else:
        draw(summary, finished(study.specs(), study.seeds, out), path.with_suffix(".png"))
    path.with_suffix(".md").write_text(markdown(summary), encoding="utf-8")
    return record(path.stem, asdict(summary) | made_by)


def made_elsewhere(figures: dict[str, Any], here: Summary) -> list[Outcome]:
    """The stored outcomes of runs whose folders are not here."""
    known = {(run.arm, run.seed) for run in here.runs}
    return [run for run in outcomes_of(figures) if (run.arm, run.seed) not in known]


def with_stored(study: StudySpec, figures: dict[str, Any], elsewhere: Sequence[Outcome], here: Summary) -> Summary:
    """An arm whose runs are in both places keeps its stored intervals beyond the target: those here are over fewer seeds."""
    both = {run.arm for run in elsewhere}
    fresh = {arm: row for arm, row in here.beyond.items() if arm not in both}
    return summary_of(study, [*elsewhere, *here.runs], beyond_of(figures) | fresh)


def added_to(stored: dict[str, Any], here: dict[str, Any]) -> dict[str, Any]:
    """How all runs were made: the stored ones, with the command and the commit of that file, and those here."""
    figures, (sittings, by_run, before) = stored["figures"], MADE_BY
    return {
        sittings: list(dict.fromkeys([*figures[sittings], *here[sittings]])),
        by_run: figures[by_run] | here[by_run],
        before: [*figures.get(before, []), {name: stored[name] for name in SITTING}],
    }


def figures_of(study: StudySpec) -> dict[str, Any]:
    return dict(json.loads(stored_at(study).read_text(encoding="utf-8"))["figures"])


def outcomes_of(figures: dict[str, Any]) -> list[Outcome]:
    return [Outcome(**one) for one in figures["runs"]]


def beyond_of(figures: dict[str, Any]) -> dict[str, dict[str, Interval]]:
    return {arm: {name: Interval(**one) for name, one in row.items()} for arm, row in figures["beyond"].items()}


def from_stored(study: StudySpec) -> Summary:
    """The summary of the outcomes that are stored, by today's code."""
    figures = figures_of(study)
    return summary_of(study, outcomes_of(figures), beyond_of(figures))


def redraw(study: StudySpec) -> None:
    """How the runs were made stays as it is stored."""
    path = stored_at(study)
    stored = json.loads(path.read_text(encoding="utf-8"))
    summary = from_stored(study)
    kept = {name: value for name, value in stored["figures"].items() if name in MADE_BY}
    path.write_text(json.dumps(stored | {"figures": asdict(summary) | kept}, indent=1) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text(markdown(summary), encoding="utf-8")
    readme.main()


def stored_at(study: StudySpec) -> Path:
    return RESULTS / f"study_{study.name}.json"


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
