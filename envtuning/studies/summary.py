"""A study's table: every arm's mean over its seeds, the differences between arms, and the value of reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from envtuning import atomic
from envtuning.runs.plan import Plan
from envtuning.studies import beyond, budget, closed_loop
from envtuning.studies.intervals import Interval
from envtuning.studies.outcomes import Outcome, finished, outcome_of
from envtuning.studies.preregistered import StudySpec
from envtuning.studies.table import Compared, cells, legend
from envtuning.studies.table import markdown as ruled

Beyond = Mapping[str, Mapping[str, Interval]]  # by arm and further test set


@dataclass(frozen=True)
class Summary(Compared):
    study: str
    question: str
    preregistered_seeds: tuple[int, ...]
    test_seed: int | None  # seed of the study's own test; None: the preset's `suites.seed`
    pilot: str
    added_later: dict[str, str]
    missing: dict[str, list[int]]  # seeds of preregistered runs that are not finished, by arm
    beyond: Beyond


def summarise(study: StudySpec, out: Path) -> Summary:
    """The summary of the finished runs."""
    runs = finished(study.specs(), study.seeds, out)
    return summary_of(study, [outcome_of(run, arm) for (arm, _), run in runs.items()], beyond.table(study, runs, out))


def summary_of(study: StudySpec, outcomes: Sequence[Outcome], further: Beyond) -> Summary:
    there = {(one.arm, one.seed) for one in outcomes}
    return Summary.of(
        Plan.of(study.base),
        outcomes,
        study.known(),
        study.trivial,
        preset=study.preset,
        study=study.name,
        question=" ".join(study.question.split()),
        preregistered_seeds=study.seeds,
        test_seed=study.test_seed,
        pilot=study.pilot,
        added_later=study.added_later,
        missing={arm: absent for arm in study.arms if (absent := [s for s in study.seeds if (arm, s) not in there])},
        beyond=further,
    )


def markdown(summary: Summary) -> str:
    """The tables for a page, in percent, with the notes below them."""
    return f"{ruled(_lines(summary))}\n\n{notes(summary)}\n{_beyond(summary)}"


def write(summary: Summary, folder: Path) -> Path:
    """The table as Markdown and all figures as JSON, in this folder; returns the table's path."""
    path = atomic.make_folder(folder) / f"study_{summary.study}.md"
    with atomic.in_turn(folder):
        atomic.write_text(path, markdown(summary))
        atomic.write_json(path.with_suffix(".json"), asdict(summary))
    return path


def _lines(summary: Summary) -> list[list[str]]:
    return cells(summary.rows, summary.headings, wide=True)


def _beyond(summary: Summary) -> str:
    """The second table: results on test sets beyond the target."""
    if not summary.beyond:
        return ""
    sets = list(next(iter(summary.beyond.values())))
    lines = [["arm", *sets], *([arm, *(row[name].percent() for name in sets)] for arm, row in summary.beyond.items())]
    return f"\nBeyond the target, which nobody trained or chose for; in percent:\n\n{ruled(lines)}\n"


def notes(summary: Summary) -> str:
    """The notes below the table: how to read it, what reading is worth, and what is missing."""
    sentences = [
        f"{summary.budget:,} {summary.unit.replace('_', ' ')} a run. In percent: {legend(_lines(summary), summary.rows)}"
    ]
    sentences.append(f"**{closed_loop.in_words(summary.headroom)}**")
    sentences.append(budget.in_words(summary.runs, summary.headroom, summary.budget))
    sentences.append(
        "The test was drawn from the preset's `suites.seed`, as in the preset's own runs at that time."
        if summary.test_seed is None
        else f"The test was drawn from seed {summary.test_seed}, which only this study uses."
    )
    sentences.append(" ".join(summary.pilot.split()) or "n was chosen without a pilot.")
    if summary.added_later:
        later = "; ".join(f"`{name}` ({' '.join(why.split())})" for name, why in summary.added_later.items())
        sentences.append(f"Added after the test was opened: {later}.")
    if summary.missing:
        absent = "; ".join(f"{arm} {len(seeds)}" for arm, seeds in summary.missing.items())
        sentences.append(f"Preregistered runs that are not finished: {absent}.")
    return " ".join(filter(None, sentences))
