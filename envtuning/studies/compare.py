"""Engineers against each other: same budget, same seeds, same first stage within a seed, and one table with intervals.

Among the names may be those of ``open_loop.ARMS``, which need no engineer. Validation and probes are charged to the budget.
``studies.study`` describes how the runs are done and what they share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.table import Table

from envtuning.loop.observer import Observer
from envtuning.runs import atomic
from envtuning.runs.log import RunLog
from envtuning.runs.spec import RunSpec, SpecError
from envtuning.runs.state import COMPARISON
from envtuning.show.console import cells_of, counted, in_words, plain_table
from envtuning.studies.intervals import Interval, t_mean
from envtuning.studies.open_loop import ARMS, arm_of
from envtuning.studies.outcomes import fallbacks
from envtuning.studies.pace import Pace
from envtuning.studies.study import Arms, Job, comparable, execute, folder_name, raise_unless_comparable
from envtuning.worlds.episodes import pooled

BASELINES = ("fixed", "uniform", "target-only")
FLOOR = 0.05  # success below which a table of engineers says nothing
NEED_A_KEY = {"openai": ("OPENAI_API_KEY",), "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY")}


@dataclass(frozen=True)
class RunFigures:
    """One finished run, as the table needs it."""

    engineer: str
    seed: int
    success: float  # the objective on the test suite, after the last stage
    others: dict[str, float]  # the world's other rates
    success_first: float  # after the first stage, the same for all engineers of a seed
    spent: dict[str, int]  # by unit
    tokens: int
    cost: float | None  # US dollars; None where no price is known
    incidents: int
    fallbacks: int  # answers after which the current config went on


@dataclass(frozen=True)
class Row:
    """One engineer over all seeds."""

    engineer: str
    seeds: int
    success: Interval
    others: dict[str, Interval]
    gain: Interval  # of success over the first stage, paired by seed
    against: dict[str, Interval]  # success over each baseline's, paired by seed
    tokens: float  # mean per run
    cost: float | None
    spent: dict[str, float]  # by unit, mean per run
    incidents: int  # of all runs together, as fallbacks are: an engineer that always fails is `fixed`
    fallbacks: int


@dataclass(frozen=True)
class Comparison:
    preset: str
    world: str
    budget: int
    unit: str
    headings: dict[str, str]  # the world's rates, the objective first
    runs: list[RunFigures]
    rows: list[Row] = field(default_factory=list)


def compare(
    spec: RunSpec,
    engineers: Sequence[str],
    seeds: Sequence[int],
    out: Path,
    observer: Observer | None = None,
    jobs: int = 1,
    began: Callable[[Job], None] = lambda job: None,
    ended: Callable[[Job, Pace], None] = lambda job, pace: None,
) -> Comparison:
    """Run whatever is not finished yet, ``jobs`` runs at a time, then draw up the table. Interrupted, it continues where it stopped."""
    spec = comparable(spec)
    arms = arms_of(spec, engineers)
    execute(arms, seeds, out, jobs=jobs, observer=observer, began=began, ended=ended)
    return tabulated(spec, arms, seeds, out)


def tabulated(spec: RunSpec, arms: Arms, seeds: Sequence[int], out: Path) -> Comparison:
    """The figures of finished runs, of arms of any kind; the spec's name and budget head the table."""
    figures = [figures_of(RunLog.open(out / folder_name(arm) / f"seed{seed}"), arm) for seed in seeds for arm in arms]
    about = spec.world.made.about
    return Comparison(
        preset=spec.name,
        world=about.name,
        budget=spec.budget,
        unit=spec.unit,
        headings=about.headings,
        runs=figures,
        rows=rows(figures, list(arms)),
    )


def arms_of(spec: RunSpec, engineers: Sequence[str]) -> Arms:
    """One arm per engineer. What would stop one of them is found out before the first run."""
    if not engineers or len(set(engineers)) < len(engineers):
        raise SpecError(f"engineers {', '.join(engineers) or 'none'}: give at least one, none twice")
    if not spec.asks_an_engineer and (idle := [name for name in engineers if name not in ("fixed", *ARMS)]):
        raise SpecError(
            f"{idle[0]} would write nothing: no stage of {spec.name} has config: engineer; compare fixed with target-only"
        )
    arms = {name: arm_of(spec, spec.engineer.replaced_by(name)) for name in engineers}
    raise_unless_comparable(arms)
    return arms


def figures_of(run: RunLog, engineer: str) -> RunFigures:
    """A finished run's figures, from its files."""
    test, about = run.state.test, run.plan.world.about
    assert test is not None, "a finished run of a comparison has opened its test suite"
    usage, objective = run.state.usage(), about.objective
    others = [metric for metric in about.headings if metric != objective]
    return RunFigures(
        engineer=engineer,
        seed=run.plan.spec.seed,
        success=pooled(test.last, objective),
        others={metric: pooled(test.last, metric) for metric in others},
        success_first=pooled(test.first, objective),
        spent=run.state.spent,
        tokens=usage.tokens,
        cost=usage.cost,
        incidents=len(run.state.incidents()),
        fallbacks=fallbacks(run.state),
    )


def rows(figures: Sequence[RunFigures], engineers: Sequence[str]) -> list[Row]:
    """One row per engineer, in the order given. Differences are paired: seed by seed."""
    return [
        _row(name, figures, [base for base in BASELINES if base in engineers and base != name]) for name in engineers
    ]


def _row(name: str, figures: Sequence[RunFigures], baselines: Sequence[str]) -> Row:
    own = {one.seed: one for one in figures if one.engineer == name}

    def paired(base: str) -> list[float]:
        others = {one.seed: one.success for one in figures if one.engineer == base}
        return [one.success - others[seed] for seed, one in own.items() if seed in others]

    costs = [one.cost for one in own.values()]
    first = next(iter(own.values()))
    return Row(
        engineer=name,
        seeds=len(own),
        success=t_mean([one.success for one in own.values()]),
        others={metric: t_mean([one.others[metric] for one in own.values()]) for metric in first.others},
        gain=t_mean([one.success - one.success_first for one in own.values()]),
        against={base: t_mean(paired(base)) for base in baselines},
        tokens=sum(one.tokens for one in own.values()) / len(own),
        cost=None if any(cost is None for cost in costs) else sum(cost or 0.0 for cost in costs) / len(own),
        spent={unit: sum(one.spent.get(unit, 0) for one in own.values()) / len(own) for unit in first.spent},
        incidents=sum(one.incidents for one in own.values()),
        fallbacks=sum(one.fallbacks for one in own.values()),
    )


def with_keys(engineers: Sequence[str], has: Callable[[str], object]) -> tuple[list[str], dict[str, str]]:
    """Those that can be asked here, and for the others the key they lack."""
    able, missing = [], {}
    for name in engineers:
        needed = NEED_A_KEY.get(name.partition("/")[0], ())
        if needed and not any(has(key) for key in needed):
            missing[name] = " or ".join(needed)
        else:
            able.append(name)
    return able, missing


def table(comparison: Comparison) -> Table:
    """The paper's table: valid and optimal per engineer, what it gains, what it costs."""
    seeds = max((row.seeds for row in comparison.rows), default=0)
    found = plain_table(
        f"{comparison.preset}: {counted(seeds, 'paired seed')}, {comparison.budget:,} {in_words(comparison.unit)} each, % of the test suite, 95 % intervals",
        "means over seeds, Student's t intervals from three seeds on; gain over the first stage and differences paired by seed; "
        f"fallbacks: answers, of all runs, after which the current config went on{_fallen_back(comparison)}{_floor(comparison)}",
    )
    bases = [base for base in BASELINES if any(base in row.against for row in comparison.rows)]
    for heading in (
        "engineer",
        *comparison.headings.values(),
        "gain",
        *(f"− {base}" for base in bases),
        "tokens",
        "cost",
        "incidents",
        "fallbacks",
    ):
        found.add_column(heading, justify="left" if heading == "engineer" else "right", no_wrap=True)
    for row in comparison.rows:
        found.add_row(
            row.engineer,
            row.success.percent(),
            *(interval.percent() for interval in row.others.values()),
            row.gain.percent(signed=True),
            *(row.against[base].percent(signed=True) if base in row.against else "" for base in bases),
            f"{row.tokens:,.0f}",
            "unknown" if row.cost is None else f"${row.cost:.4f}",
            str(row.incidents),
            str(row.fallbacks),
        )
    return found


def _fallen_back(comparison: Comparison) -> str:
    named = [f"{one.fallbacks} in {one.engineer}/seed{one.seed}" for one in comparison.runs if one.fallbacks]
    return f" ({', '.join(named)})" if named else ""


def _floor(comparison: Comparison) -> str:
    best = max((row.success.mean for row in comparison.rows), default=1.0)
    if best >= FLOOR:
        return ""
    return (
        f". None reaches {FLOOR:.0%}: nothing was learnt that could be compared; an easier target, an easier first stage or a larger "
        "budget would tell engineers apart"
    )


def as_json(comparison: Comparison) -> dict[str, object]:
    return asdict(comparison)


def write(comparison: Comparison, out: Path) -> Path:
    """The figures beside the runs, and the table as it is printed, for their page."""
    path = out / COMPARISON
    with atomic.in_turn(out):
        atomic.write_json(path, as_json(comparison) | {"table": cells_of(table(comparison))})
    return path
