"""Compares engineers on the same budgets, seeds and first stages, in one table with intervals.

Validation and probes are charged to the budget. ``studies.study`` carries out the runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from engineers.plain.open_loop import OPEN_LOOP
from engineers.shared.counts import counted
from envtuning import atomic
from envtuning.loop.observer import Observer
from envtuning.runs.plan import Plan
from envtuning.runs.spec import RunSpec, SpecError
from envtuning.runs.state import COMPARISON
from envtuning.show.console import in_words
from envtuning.studies import budget, closed_loop
from envtuning.studies.outcomes import finished, outcome_of
from envtuning.studies.study import Arms, comparable, execute, raise_unless_comparable
from envtuning.studies.table import Compared, Known, cells, drawn, legend

BASELINES = ("fixed", "uniform", "target-only")
FLOOR = 0.05  # if no arm has more success than this, a table cannot compare engineers


@dataclass(frozen=True)
class Comparison(Compared):
    world: str


def compare(
    spec: RunSpec,
    engineers: Sequence[str],
    seeds: Sequence[int],
    out: Path,
    observer: Observer | None = None,
    **how: Any,
) -> Comparison:
    """Do the unfinished runs, then make the table. After an interruption, the same call continues.

    ``how``: further arguments of ``execute``: ``jobs``, ``ray``, ``began``, ``ended``.
    """
    arms = arms_of(spec, engineers)
    raise_unless_comparable(arms)
    execute(arms, seeds, out, observer=observer, **how)
    return comparison_of(spec, arms, seeds, out)


def arms_of(spec: RunSpec, engineers: Sequence[str]) -> Arms:
    """One arm per engineer."""
    if not engineers or len(set(engineers)) < len(engineers):
        raise SpecError(f"engineers {', '.join(engineers) or 'none'}: give at least one, none twice")
    if not spec.asks_an_engineer and (idle := [name for name in engineers if name not in ("fixed", *OPEN_LOOP)]):
        raise SpecError(
            f"{idle[0]} would write nothing: no stage of {spec.name} has config: engineer; compare fixed with target-only"
        )
    base = comparable(spec)
    return {name: base.model_copy(update={"engineer": spec.engineer.replaced_by(name)}) for name in engineers}


def comparison_of(spec: RunSpec, arms: Arms, seeds: Sequence[int], out: Path) -> Comparison:
    """The comparison of the finished runs."""
    runs = [outcome_of(run, arm) for (arm, _), run in finished(arms, seeds, out).items()]
    plan, knowing = Plan.of(spec), {name: Known.of(arm.engineer) for name, arm in arms.items()}
    return Comparison.of(plan, runs, knowing, BASELINES, preset=spec.name, world=plan.world.about.name)


def table(comparison: Comparison) -> Table:
    """The table for a terminal, with the value of reading below it."""
    title, caption, lines = _sheet(comparison)
    return drawn(lines, title, caption)


def _sheet(comparison: Comparison) -> tuple[str, str, list[list[str]]]:
    """The title, the caption and the table's lines, headings first."""
    seeds = max((row.seeds for row in comparison.rows), default=0)
    title = (
        f"{comparison.preset}: {counted(seeds, 'paired seed')}, {comparison.budget:,} {in_words(comparison.unit)} each, "
        "% of the test suite"
    )
    lines = cells(comparison.rows, comparison.headings, wide=False)
    said = [legend(lines, comparison.rows), _fallen_back(comparison), _floor(comparison)]
    said += [
        closed_loop.in_words(comparison.headroom),
        budget.in_words(comparison.runs, comparison.headroom, comparison.budget),
    ]
    return title, " ".join(filter(None, said)), lines


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


def write(comparison: Comparison, out: Path) -> Path:
    """Write the figures and the printed table beside the runs; the report page shows the table."""
    path = out / COMPARISON
    title, caption, (headings, *lines) = _sheet(comparison)
    shown = {"title": title, "caption": caption, "headings": headings, "rows": lines}
    with atomic.in_turn(out):
        atomic.write_json(path, asdict(comparison) | {"table": shown})
    return path
