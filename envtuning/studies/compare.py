"""Compares arms on the same budgets, seeds and first stages, in one table with intervals.

A table holds whatever is finished, and says what is not. Validation and probes are charged to the budget. ``studies.study`` carries
out the runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engineers.shared.counts import counted, in_words
from envtuning import atomic
from envtuning.loop.observer import Observer
from envtuning.runs.plan import Plan
from envtuning.runs.spec import RunSpec
from envtuning.runs.state import COMPARISON
from envtuning.show.console import FittingTable
from envtuning.studies import beyond, budget, closed_loop
from envtuning.studies.closed_loop import Gain
from envtuning.studies.intervals import Interval
from envtuning.studies.outcomes import Outcome, finished, outcome_of
from envtuning.studies.preregistered import StudySpec
from envtuning.studies.study import execute, raise_unless_comparable
from envtuning.studies.table import Row, cells, drawn, headroom, legend, rows
from envtuning.studies.table import markdown as ruled

FLOOR = 0.05  # if no arm has more success than this, a table cannot compare engineers

Beyond = Mapping[str, Mapping[str, Interval]]  # by arm and further test set


@dataclass(frozen=True)
class Comparison:
    """Arms on equal budgets, and their results."""

    preset: str
    headings: dict[str, str]  # the world's rates, the objective first
    budget: int
    unit: str
    headroom: Gain | None
    rows: list[Row]
    runs: Sequence[Outcome]
    study: str
    question: str  # empty: it was not written down in advance
    preregistered_seeds: tuple[int, ...]
    test_seed: int | None  # seed of the comparison's own test; None: the preset's `suites.seed`
    pilot: str
    added_later: dict[str, str]
    missing: dict[str, list[int]]  # seeds of runs that are not finished, by arm
    beyond: Beyond


def compare(
    spec: RunSpec,
    engineers: Sequence[str],
    seeds: Sequence[int],
    out: Path,
    observer: Observer | None = None,
    **how: Any,
) -> Comparison:
    """Do the unfinished runs of these engineers, then make the table. After an interruption, the same call continues.

    ``how``: further arguments of ``execute``: ``jobs``, ``ray``, ``began``, ``ended``.
    """
    study = StudySpec.of(spec, engineers, seeds)
    arms = study.specs()
    raise_unless_comparable(arms)
    execute(arms, seeds, out, observer=observer, **how)
    return comparison_of(study, out)


def comparison_of(study: StudySpec, out: Path) -> Comparison:
    """The comparison of the finished runs."""
    runs = finished(study.specs(), study.seeds, out)
    outcomes = [outcome_of(run, arm) for (arm, _), run in runs.items()]
    return comparison_from(study, outcomes, beyond.table(study, runs, out))


def comparison_from(study: StudySpec, outcomes: Sequence[Outcome], further: Beyond) -> Comparison:
    """The comparison of these outcomes, which may be stored ones."""
    plan, known = Plan.of(study.base), study.known()
    there = {(one.arm, one.seed) for one in outcomes}
    return Comparison(
        preset=study.preset,
        headings=plan.world.about.headings,
        budget=plan.spec.budget,
        unit=plan.unit,
        headroom=headroom(outcomes, known),
        rows=rows(outcomes, known, study.trivial),
        runs=outcomes,
        study=study.name,
        question=" ".join(study.question.split()),
        preregistered_seeds=study.seeds,
        test_seed=study.test_seed,
        pilot=study.pilot,
        added_later=study.added_later,
        missing={arm: absent for arm in study.arms if (absent := [s for s in study.seeds if (arm, s) not in there])},
        beyond=further,
    )


def tables(comparison: Comparison) -> list[FittingTable]:
    """The table for a terminal, with the value of reading below it; the results beyond the target, if there are any, in another one."""
    title, caption, lines = _sheet(comparison)
    found = [drawn(lines, title, caption)]
    if further := _beyond(comparison):
        found.append(drawn(further, f"{comparison.study}: % beyond the target", ""))
    return found


def markdown(comparison: Comparison) -> str:
    """The tables for a page, in percent, with the notes below them."""
    text = f"{ruled(_wide(comparison))}\n\n{notes(comparison)}\n"
    if further := _beyond(comparison):
        text += f"\nBeyond the target, which nobody trained or chose for; in percent:\n\n{ruled(further)}\n"
    return text


def write(comparison: Comparison, out: Path) -> Path:
    """Write the figures with the printed table, and the table for a page, beside the runs; returns the figures' path."""
    path = atomic.make_folder(out) / COMPARISON
    title, caption, (headings, *lines) = _sheet(comparison)
    shown = {"title": title, "caption": caption, "headings": headings, "rows": lines}
    with atomic.in_turn(out):
        atomic.write_text(path.with_suffix(".md"), markdown(comparison))
        atomic.write_json(path, asdict(comparison) | {"table": shown})
    return path


def notes(comparison: Comparison) -> str:
    """The notes below the table of a page: how to read it, what reading is worth, and what is missing."""
    explained = legend(_wide(comparison), comparison.rows)
    sentences = [
        f"{comparison.budget:,} {in_words(comparison.unit)} a run. In percent: {explained}",
        f"**{closed_loop.in_words(comparison.headroom)}**",
        budget.in_words(comparison.runs, comparison.headroom, comparison.budget),
        *_written_down(comparison),
        _missing(comparison),
    ]
    return " ".join(filter(None, sentences))


def _written_down(comparison: Comparison) -> list[str]:
    """What was known of a study before its runs; nothing where none was written down."""
    if not comparison.question:
        return []
    said = [
        "The test was drawn from the preset's `suites.seed`, as in the preset's own runs at that time."
        if comparison.test_seed is None
        else f"The test was drawn from seed {comparison.test_seed}, which only this study uses.",
        " ".join(comparison.pilot.split()) or "n was chosen without a pilot.",
    ]
    if comparison.added_later:
        later = "; ".join(f"`{name}` ({' '.join(why.split())})" for name, why in comparison.added_later.items())
        said.append(f"Added after the test was opened: {later}.")
    return said


def _missing(comparison: Comparison) -> str:
    absent = "; ".join(f"{arm} {len(seeds)}" for arm, seeds in comparison.missing.items())
    runs = "Preregistered runs" if comparison.question else "Runs"
    return f"{runs} that are not finished: {absent}." if absent else ""


def _sheet(comparison: Comparison) -> tuple[str, str, list[list[str]]]:
    """The title, the caption and the lines of the table for a terminal, headings first."""
    seeds = max((row.seeds for row in comparison.rows), default=0)
    title = (
        f"{comparison.study}: {counted(seeds, 'paired seed')}, {comparison.budget:,} {in_words(comparison.unit)} each, "
        "% of the test suite"
    )
    lines = cells(comparison.rows, comparison.headings, wide=False)
    said = [legend(lines, comparison.rows), _fallen_back(comparison), _floor(comparison)]
    said += [
        closed_loop.in_words(comparison.headroom),
        budget.in_words(comparison.runs, comparison.headroom, comparison.budget),
        _missing(comparison),
    ]
    return title, " ".join(filter(None, said)), lines


def _wide(comparison: Comparison) -> list[list[str]]:
    return cells(comparison.rows, comparison.headings, wide=True)


def _beyond(comparison: Comparison) -> list[list[str]]:
    """The second table: results on test sets beyond the target. Empty without such sets."""
    if not comparison.beyond:
        return []
    sets = list(next(iter(comparison.beyond.values())))
    return [["arm", *sets], *([arm, *(row[name].percent() for name in sets)] for arm, row in comparison.beyond.items())]


def _fallen_back(comparison: Comparison) -> str:
    named = [f"{one.fallbacks} in {one.arm}/seed{one.seed}" for one in comparison.runs if one.fallbacks]
    return f"Fallbacks: {', '.join(named)}." if named else ""


def _floor(comparison: Comparison) -> str:
    best = max((row.success.mean for row in comparison.rows), default=1.0)
    if best >= FLOOR:
        return ""
    return (
        f"None reaches {FLOOR:.0%}: nothing was learnt that could be compared; an easier target, an easier first stage or a larger "
        "budget would tell engineers apart."
    )
