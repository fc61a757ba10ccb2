"""Store a finished comparison among the results that pages may claim: ``python -m benchmarks.store corridors``.

The files are in ``benchmarks/preregistered``; ``envtuning compare benchmarks/preregistered/corridors.yaml --jobs 2`` does the runs. Store them at
the commit that made them. The table holds whatever is finished and says what is not. Stored outcomes of runs whose folders are not
here stay in it, so that an arm can be added later. ``--redraw`` makes the table of the stored outcomes again, without the runs.
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
from benchmarks.store_figure import draw
from envtuning.show.terminal import make_console
from envtuning.studies.compare import Comparison, comparison_from, comparison_of, markdown
from envtuning.studies.intervals import Interval
from envtuning.studies.outcomes import Outcome, finished
from envtuning.studies.preregistered import StudySpec, load_study

HERE = Path(__file__).parent / "preregistered"
# Entries of a stored study beside its comparison. The last one is there if arms or seeds were added to it.
MADE_BY = ("runs_made_by_commits", "commits_of_runs", "added_to")
SITTING = ("recorded", "command", "commit", "cpu_minutes")  # of ``benchmarks._record.conditions``


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", choices=sorted(path.stem for path in HERE.glob("*.yaml")))
    parser.add_argument("--out", type=Path, default=Path("runs/compare"), help="folder of all comparisons")
    parser.add_argument("--redraw", action="store_true", help="the table of the outcomes that are stored")
    arguments = parser.parse_args()
    study = load_study(HERE / f"{arguments.study}.yaml")
    if arguments.redraw:
        redraw(study)
        return
    raise_unless_committed()
    make_console().print(f"figures: {store(study, arguments.out / study.name)}")


def store(study: StudySpec, out: Path) -> Path:
    """The table of what is finished and its picture; returns the JSON's path."""
    comparison, path = comparison_of(study, out), stored_at(study)
    commit = str(conditions()["commit"])
    made_by: dict[str, Any] = {
        "runs_made_by_commits": [commit],
        "commits_of_runs": {f"{run.arm}/seed{run.seed}": commit for run in comparison.runs},
    }
    stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"figures": {"runs": [], "beyond": {}}}
    figures = stored["figures"]
    if elsewhere := made_elsewhere(figures, comparison):  # the picture stays: its curves are in the runs' folders alone
        comparison, made_by = with_stored(study, figures, elsewhere, comparison), added_to(stored, made_by)
    else:
        draw(comparison, finished(study.specs(), study.seeds, out), path.with_suffix(".png"))
    path.with_suffix(".md").write_text(markdown(comparison), encoding="utf-8")
    return record(path.stem, asdict(comparison) | made_by)


def made_elsewhere(figures: dict[str, Any], here: Comparison) -> list[Outcome]:
    """The stored outcomes of runs whose folders are not here."""
    known = {(run.arm, run.seed) for run in here.runs}
    return [run for run in outcomes_of(figures) if (run.arm, run.seed) not in known]


def with_stored(
    study: StudySpec, figures: dict[str, Any], elsewhere: Sequence[Outcome], here: Comparison
) -> Comparison:
    """An arm whose runs are in both places keeps its stored intervals beyond the target: those here are over fewer seeds."""
    both = {run.arm for run in elsewhere}
    fresh = {arm: row for arm, row in here.beyond.items() if arm not in both}
    return comparison_from(study, [*elsewhere, *here.runs], beyond_of(figures) | fresh)


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


def from_stored(study: StudySpec) -> Comparison:
    """The comparison of the outcomes that are stored, by today's code."""
    figures = figures_of(study)
    return comparison_from(study, outcomes_of(figures), beyond_of(figures))


def redraw(study: StudySpec) -> None:
    """How the runs were made stays as it is stored."""
    path = stored_at(study)
    stored = json.loads(path.read_text(encoding="utf-8"))
    comparison = from_stored(study)
    kept = {name: value for name, value in stored["figures"].items() if name in MADE_BY}
    path.write_text(json.dumps(stored | {"figures": asdict(comparison) | kept}, indent=1) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text(markdown(comparison), encoding="utf-8")
    readme.main()


def stored_at(study: StudySpec) -> Path:
    return RESULTS / f"study_{study.name}.json"


if __name__ == "__main__":
    main()
