"""Engineers against each other: same budget, same seeds, same first stage within a seed, and one table with intervals.

Among the names may be those of ``open_loop.ARMS``, which need no engineer. Validation and probes are charged to the budget.
``studies.study`` describes how the runs are done and what they share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Table

from envtuning.loop.observer import Observer
from envtuning.runs import atomic
from envtuning.runs.log import RunLog
from envtuning.runs.plan import Plan
from envtuning.runs.spec import RunSpec, SpecError
from envtuning.runs.state import COMPARISON
from envtuning.show.console import counted, in_words
from envtuning.studies import closed_loop
from envtuning.studies.closed_loop import Gain
from envtuning.studies.open_loop import ARMS, arm_of, known
from envtuning.studies.outcomes import Outcome, outcome_of
from envtuning.studies.pace import Pace
from envtuning.studies.study import Arms, Job, comparable, execute, folder_name, raise_unless_comparable
from envtuning.studies.table import Row, cells, drawn, headroom, legend, rows

BASELINES = ("fixed", "uniform", "target-only")
FLOOR = 0.05  # success below which a table of engineers says nothing


@dataclass(frozen=True)
class Comparison:
    preset: str
    world: str
    budget: int
    unit: str
    headings: dict[str, str]  # the world's rates, the objective first
    runs: list[Outcome]
    rows: list[Row]
    headroom: Gain | None


def compare(
    spec: RunSpec,
    engineers: Sequence[str],
    seeds: Sequence[int],
    out: Path,
    observer: Observer | None = None,
    jobs: int = 1,
    ray: bool = False,
    began: Callable[[Job], None] = lambda job: None,
    ended: Callable[[Job, Pace], None] = lambda job, pace: None,
) -> Comparison:
    """Run whatever is not finished yet, ``jobs`` runs at a time, then draw up the table. Interrupted, it continues where it stopped."""
    spec = comparable(spec)
    arms = arms_of(spec, engineers)
    raise_unless_comparable(arms)
    execute(arms, seeds, out, jobs=jobs, ray=ray, observer=observer, began=began, ended=ended)
    knowing = {name: known(spec.engineer.replaced_by(name)) for name in engineers}
    runs = [outcome_of(RunLog.open(out / folder_name(arm) / f"seed{seed}"), arm) for seed in seeds for arm in arms]
    plan = Plan.of(spec)
    about = plan.world.about
    return Comparison(
        preset=spec.name,
        world=about.name,
        budget=spec.budget,
        unit=plan.unit,
        headings=about.headings,
        runs=runs,
        rows=rows(runs, knowing, BASELINES),
        headroom=headroom(runs, knowing),
    )


def arms_of(spec: RunSpec, engineers: Sequence[str]) -> Arms:
    """One arm per engineer."""
    if not engineers or len(set(engineers)) < len(engineers):
        raise SpecError(f"engineers {', '.join(engineers) or 'none'}: give at least one, none twice")
    if not spec.asks_an_engineer and (idle := [name for name in engineers if name not in ("fixed", *ARMS)]):
        raise SpecError(
            f"{idle[0]} would write nothing: no stage of {spec.name} has config: engineer; compare fixed with target-only"
        )
    return {name: arm_of(spec, spec.engineer.replaced_by(name)) for name in engineers}


def table(comparison: Comparison) -> Table:
    """The paper's table, and what reading is worth, for a terminal."""
    title, caption, lines = _sheet(comparison)
    return drawn(lines, title, caption)


def _sheet(comparison: Comparison) -> tuple[str, str, list[list[str]]]:
    """Title, caption, and lines, the headings first."""
    seeds = max((row.seeds for row in comparison.rows), default=0)
    title = (
        f"{comparison.preset}: {counted(seeds, 'paired seed')}, {comparison.budget:,} {in_words(comparison.unit)} each, "
        "% of the test suite"
    )
    lines = cells(comparison.rows, comparison.headings, wide=False)
    said = [legend(lines, comparison.rows), _fallen_back(comparison), _floor(comparison)]
    return title, " ".join(filter(None, [*said, closed_loop.in_words(comparison.headroom)])), lines


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
    """The figures beside the runs, and the table as it is printed, for their page."""
    path = out / COMPARISON
    title, caption, (headings, *lines) = _sheet(comparison)
    shown = {"title": title, "caption": caption, "headings": headings, "rows": lines}
    with atomic.in_turn(out):
        atomic.write_json(path, asdict(comparison) | {"table": shown})
    return path
