"""A study's table: every arm over its seeds, what lies between arms, how much there was to gain and who gained it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envtuning.runs import atomic
from envtuning.runs.log import RunLog
from envtuning.runs.plan import Plan
from envtuning.studies import beyond, statistics
from envtuning.studies.intervals import Interval
from envtuning.studies.outcomes import IGNITED, Outcome, finished, matrix, outcome_of
from envtuning.studies.preregistered import StudySpec
from envtuning.studies.statistics import (
    FEWEST,
    above_the_best,
    improvement,
    interquartile_mean,
    interval,
    mean,
    mean_difference,
    over_seeds_and_cases,
    worst_tenth,
)


@dataclass(frozen=True)
class ArmRow:
    """One arm over the seeds that are finished in all arms that it is compared with."""

    arm: str
    seeds: int
    success: Interval
    interquartile: Interval
    worst_tenth: float | None  # on the tenth of the cases that its other seeds solve least often; None for one seed
    ignited: float  # share of seeds whose validation ever reached IGNITED
    ignited_after: float | None  # budget spent until then, the median of those that did
    incidents: int
    fallbacks: int
    above_trivial: (
        Interval | None
    )  # mean over the best trivial arm's; None for these themselves, or where they are missing
    against: dict[str, Paired]  # each trivial arm


@dataclass(frozen=True)
class Paired:
    """One arm against another, seed by seed."""

    seeds: int
    difference: Interval  # seeds resampled
    with_cases: Interval  # seeds and test cases resampled
    chance_to_beat: Interval  # over all pairs of seeds, ties half
    wins: int  # seeds on which the arm lies above the other


@dataclass(frozen=True)
class Summary:
    study: str
    question: str
    preset: str
    metric: str
    budget: int
    unit: str
    preregistered_seeds: tuple[int, ...]
    test_seed: int | None  # of the study's own test; None: the preset's `suites.seed`
    pilot: str
    added_later: dict[str, str]
    searched: tuple[str, ...]
    missing: dict[str, list[int]]  # preregistered runs that are not finished, by arm
    headroom: Interval | None
    headroom_expected: float
    rows: list[ArmRow]
    beyond: dict[str, dict[str, Interval]]  # by arm and further test set
    runs: list[Outcome]


def summarise(study: StudySpec, out: Path) -> Summary:
    """From whatever is finished. Arms are compared on the seeds that both have."""
    base, arms = study.base, study.specs()
    runs = finished(arms, study.seeds, out)
    outcomes = [outcome_of(run, arm) for (arm, _), run in runs.items()]
    success = {arm: {one.seed: one.success for one in outcomes if one.arm == arm} for arm in arms}
    success = {arm: found for arm, found in success.items() if found}
    return Summary(
        study=study.name,
        question=" ".join(study.question.split()),
        preset=study.preset,
        metric=study.metric,
        budget=base.budget,
        unit=Plan.of(base).unit,
        preregistered_seeds=study.seeds,
        test_seed=study.test_seed,
        pilot=study.pilot,
        added_later=study.added_later,
        searched=study.searched,
        missing={arm: absent for arm in arms if (absent := [seed for seed in study.seeds if (arm, seed) not in runs])},
        headroom=_headroom(study, success),
        headroom_expected=study.margin,
        rows=[_row(study, arm, success, outcomes, runs) for arm in success],
        beyond=beyond.table(study, runs, out),
        runs=outcomes,
    )


def common(success: Mapping[str, Mapping[int, float]], *arms: str) -> list[int]:
    """The seeds that all of these arms have."""
    return [seed for seed in success[arms[0]] if all(seed in success[arm] for arm in arms)]


def column(success: Mapping[str, Mapping[int, float]], arm: str, seeds: Sequence[int]) -> NDArray[np.float64]:
    return np.array([success[arm][seed] for seed in seeds])


def _headroom(study: StudySpec, success: Mapping[str, Mapping[int, float]]) -> Interval | None:
    if not study.trivial or not study.searched or not all(arm in success for arm in (*study.trivial, *study.searched)):
        return None
    seeds = common(success, *study.trivial, *study.searched)
    columns = {arm: column(success, arm, seeds) for arm in (*study.trivial, *study.searched)}
    return statistics.headroom(columns, study.searched, study.trivial) if seeds else None


def _row(
    study: StudySpec,
    arm: str,
    success: Mapping[str, Mapping[int, float]],
    outcomes: Sequence[Outcome],
    runs: Mapping[tuple[str, int], RunLog],
) -> ArmRow:
    own = [one for one in outcomes if one.arm == arm]
    seeds = list(success[arm])
    values = column(success, arm, seeds)
    lit = sorted(one.ignited_after for one in own if one.ignited_after is not None)
    trivial = [name for name in study.trivial if name in success]
    above = None
    if arm not in study.trivial and len(trivial) == len(study.trivial) > 0:
        shared = common(success, arm, *trivial)
        if shared:
            above = interval(above_the_best, *(column(success, name, shared) for name in (arm, *trivial)))
    return ArmRow(
        arm=arm,
        seeds=len(own),
        success=interval(mean, values),
        interquartile=interval(interquartile_mean, values),
        worst_tenth=worst_tenth(matrix(runs, arm, seeds)),
        ignited=len(lit) / len(own),
        ignited_after=float(np.median(lit)) if lit else None,
        incidents=sum(one.incidents for one in own),
        fallbacks=sum(one.fallbacks for one in own),
        above_trivial=above,
        against={
            name: _paired(arm, name, success, runs) for name in trivial if name != arm and common(success, arm, name)
        },
    )


def _paired(
    arm: str, other: str, success: Mapping[str, Mapping[int, float]], runs: Mapping[tuple[str, int], RunLog]
) -> Paired:
    seeds = common(success, arm, other)
    ours, theirs = column(success, arm, seeds), column(success, other, seeds)
    return Paired(
        seeds=len(seeds),
        difference=interval(mean_difference, ours, theirs),
        with_cases=over_seeds_and_cases(matrix(runs, arm, seeds), matrix(runs, other, seeds)),
        chance_to_beat=interval(improvement, ours, theirs),
        wins=int(np.sum(ours > theirs)),
    )


def as_json(summary: Summary) -> dict[str, Any]:
    return asdict(summary)


def markdown(summary: Summary) -> str:
    """The table for a page, in percent."""
    trivial = list(dict.fromkeys(name for row in summary.rows for name in row.against))
    head = ["arm", "n", summary.metric.replace("_", " "), "middle half", *(f"− {name}" for name in trivial)]
    head += ["beats " + name for name in trivial] + ["worst tenth", "ignited", "incidents", "fallbacks"]
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    for row in summary.rows:
        against = [row.against.get(name) for name in trivial]
        lines.append(
            [
                f"`{row.arm}`",
                str(row.seeds),
                said(row.success),
                f"{100 * row.interquartile.mean:.1f}",
                *("" if pair is None else difference(pair) for pair in against),
                *("" if pair is None else f"{said(pair.chance_to_beat)}, {pair.wins}/{pair.seeds}" for pair in against),
                "" if row.worst_tenth is None else f"{100 * row.worst_tenth:.1f}",
                ignition(row),
                str(row.incidents),
                str(row.fallbacks),
            ]
        )
    return _table(lines) + "\n\n" + notes(summary) + "\n" + _beyond(summary)


def write(summary: Summary, folder: Path) -> Path:
    """The table as Markdown and all figures as JSON, in this folder; returns the table's path."""
    path = atomic.make_folder(folder) / f"study_{summary.study}.md"
    with atomic.in_turn(folder):
        atomic.write_text(path, markdown(summary))
        atomic.write_json(path.with_suffix(".json"), as_json(summary))
    return path


def _table(lines: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _beyond(summary: Summary) -> str:
    """The second table: sets that are not the target."""
    if not summary.beyond:
        return ""
    sets = list(next(iter(summary.beyond.values())))
    lines = [["arm", *sets], ["---", *["---:"] * len(sets)]]
    lines += [[f"`{arm}`", *(said(row[name]) for name in sets)] for arm, row in summary.beyond.items()]
    return f"\nBeyond the target, which nobody trained or chose for; in percent:\n\n{_table(lines)}\n"


def notes(summary: Summary) -> str:
    """What stands below the table: headroom, what each arm takes of it, what is missing."""
    sentences = [
        f"{summary.budget:,} {summary.unit.replace('_', ' ')} a run. In percent, 95 % intervals by bootstrap over seeds, "
        "of differences also [over seeds and test cases]; beats: the chance that a run lies above one of the other arm, over all pairs of "
        "seeds, and on how many of the paired seeds it does; "
        f"ignited: share of seeds whose validation reached {IGNITED:.0%}, and the median of what they had spent."
    ]
    if any(row.seeds < FEWEST for row in summary.rows):
        sentences.append(
            f"No interval stands where there are fewer than {FEWEST} seeds: a bootstrap of so few is far too narrow."
        )
    if summary.headroom is not None:
        room = summary.headroom
        held = "at least" if room.mean >= summary.headroom_expected else "less than"
        sentences.append(
            f"Headroom over the better trivial answer: {said(room)} points, {held} the {100 * summary.headroom_expected:.0f} expected."
        )
        for row in summary.rows:
            if row.above_trivial is not None and room.mean > 0:
                sentences.append(
                    f"`{row.arm}` takes {row.above_trivial.mean / room.mean:.0%} of it ({said(row.above_trivial, signed=True)})."
                )
    elif not summary.searched:
        sentences.append("No searched schedule is among the arms: headroom was not measured.")
    sentences.append(
        "The test was drawn from the preset's `suites.seed`, as that of the preset's own runs then was."
        if summary.test_seed is None
        else f"The test was drawn from seed {summary.test_seed}, which is this study's alone."
    )
    sentences.append(" ".join(summary.pilot.split()) or "n was chosen without a pilot.")
    if summary.added_later:
        later = "; ".join(f"`{name}` ({' '.join(why.split())})" for name, why in summary.added_later.items())
        sentences.append(f"Written down after the test was opened: {later}.")
    if summary.missing:
        absent = "; ".join(f"{arm} {len(seeds)}" for arm, seeds in summary.missing.items())
        sentences.append(f"Preregistered runs that are not finished: {absent}.")
    return " ".join(sentences)


def said(value: Interval, *, signed: bool = False) -> str:
    """43.1 (41.0, 45.2), in percent."""
    sign = "+" if signed else ""
    spread = (
        ""
        if value.low is None or value.high is None
        else f" ({100 * value.low:{sign}.1f}, {100 * value.high:{sign}.1f})"
    )
    return f"{100 * value.mean:{sign}.1f}{spread}"


def difference(pair: Paired) -> str:
    """+14.0 (+11.6, +16.8) [+11.1, +17.2]: over seeds, and over seeds and cases."""
    wide = pair.with_cases
    more = "" if wide.low is None or wide.high is None else f" [{100 * wide.low:+.1f}, {100 * wide.high:+.1f}]"
    return said(pair.difference, signed=True) + more


def ignition(row: ArmRow) -> str:
    after = "" if row.ignited_after is None else f" after {row.ignited_after / 1000:.0f}k"
    return f"{row.ignited:.0%}{after}"
