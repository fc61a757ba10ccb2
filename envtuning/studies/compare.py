"""Engineers against each other: same budget, same seeds, same first stage within a seed, and one table with intervals.

The budget is in env steps, validation and probes charged. The first stage is trained once per seed and copied into every
engineer's run, where it is charged in full; its config is drawn anew for every seed where the spec redraws it. The guard
lets working slices be dropped: else baselines that redraw everything would be refused.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.table import Table

from envtuning.loop import run as loop
from envtuning.loop.ask import raise_unless_askable
from envtuning.loop.observer import Observer
from envtuning.runs import atomic
from envtuning.runs.folder import RunFolder, next_task
from envtuning.runs.spec import RunSpec, SpecError
from envtuning.show.console import counted, plain_table
from envtuning.studies.intervals import Interval, t_mean
from envtuning.trainees import raise_unless_makeable
from envtuning.worlds.lakes.episodes import pooled

BASELINES = ("fixed", "uniform")
FIRST_STAGE = "first-stage"  # the folder of what is shared; beside it one for each engineer
NEED_A_KEY = {"openai": ("OPENAI_API_KEY",), "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY")}


@dataclass(frozen=True)
class RunFigures:
    """One finished run, as the table needs it."""

    engineer: str
    seed: int
    valid: float  # on the test suite, after the last stage
    optimal: float
    valid_first: float  # after the first stage, the same for all engineers of a seed
    env_steps: int
    tokens: int
    cost: float | None  # US dollars; None where no price is known
    incidents: int


@dataclass(frozen=True)
class Row:
    """One engineer over all seeds."""

    engineer: str
    seeds: int
    valid: Interval
    optimal: Interval
    gain: Interval  # of valid over the first stage, paired by seed
    against: dict[str, Interval]  # valid over each baseline's, paired by seed
    tokens: float  # mean per run
    cost: float | None
    env_steps: float
    incidents: int


@dataclass(frozen=True)
class Comparison:
    preset: str
    budget: int
    runs: list[RunFigures]
    rows: list[Row] = field(default_factory=list)


def compare(
    spec: RunSpec, engineers: Sequence[str], seeds: Sequence[int], out: Path, observer: Observer | None = None
) -> Comparison:
    """Run whatever is not finished yet, then draw up the table. Interrupted, it goes on where it was."""
    observer = observer or Observer()
    spec = spec.model_copy(update={"guard": spec.guard.model_copy(update={"max_drop": None})})
    raise_unless_comparable(spec, engineers)
    figures = []
    for seed in seeds:  # seed by seed, so that an interrupted comparison is still a paired one
        shared = first_stage(spec.model_copy(update={"seed": seed}), out, observer)
        for engineer in engineers:
            figures.append(figures_of(contest(spec, engineer, seed, shared, out, observer), engineer))
    return Comparison(spec.name, spec.budget, figures, rows(figures, engineers))


def raise_unless_comparable(spec: RunSpec, engineers: Sequence[str]) -> None:
    """Find out before the first run, not after the last."""
    if not engineers or len(set(engineers)) < len(engineers):
        raise SpecError(f"engineers {', '.join(engineers) or 'none'}: give at least one, none twice")
    if not spec.suites.test_per_size:
        raise SpecError("suites.test_per_size is 0: engineers are compared on the test suite, so give it at least 1")
    raise_unless_makeable(spec.trainee.kind, spec.trainee.options)
    for engineer in engineers:
        raise_unless_askable(written_by(spec, engineer))


def written_by(spec: RunSpec, engineer: str) -> RunSpec:
    """The spec with another engineer; the options in it are the spec's own engineer's."""
    options = spec.engineer.options if engineer == spec.engineer.name else {}
    return spec.model_copy(update={"engineer": spec.engineer.model_copy(update={"name": engineer, "options": options})})


def first_stage(spec: RunSpec, out: Path, observer: Observer) -> RunFolder:
    """The stage before any engineer has spoken: trained once per seed."""
    run = RunFolder.create(out / FIRST_STAGE / f"seed{spec.seed}", spec)
    loop.go(run, observer, stages=1)
    return run


def contest(spec: RunSpec, engineer: str, seed: int, shared: RunFolder, out: Path, observer: Observer) -> RunFolder:
    """One engineer's run on one seed, begun with a copy of the shared first stage."""
    own = written_by(spec, engineer).model_copy(update={"seed": seed})
    run = RunFolder.create(out / folder_name(engineer) / f"seed{seed}", own)
    if next_task(run) is not None:
        copy_first_stage(shared, run)
        loop.go(run, observer)
    return run


def copy_first_stage(source: RunFolder, run: RunFolder) -> None:
    """Whatever the first stage needed and left, suites and untrained trainee included."""
    for original in (source.start, source.stage(0).path):
        copy = run.path / original.relative_to(source.path)
        atomic.make_folder(copy.parent)
        if not copy.exists():
            with atomic.new_folder(copy) as draft:
                shutil.copytree(original, draft, dirs_exist_ok=True)
    for original in (source.validation_file, source.test_suite_file):
        copy = run.path / original.name
        if original.exists() and not copy.exists():
            with atomic.new_file(copy) as draft:
                shutil.copyfile(original, draft)


def folder_name(engineer: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-." else "_" for letter in engineer)


def run_folders(out: Path) -> list[Path]:
    """The engineers' runs in a comparison's folder; empty for any other folder."""
    found = sorted(record.parent for record in out.glob("*/seed*/run.json"))
    return [path for path in found if path.parent.name != FIRST_STAGE]


def figures_of(run: RunFolder, engineer: str) -> RunFigures:
    """A finished run's figures, from its files."""
    test = run.test
    assert test is not None, "a finished run of a comparison has opened its test suite"
    answers = [stage.answer for stage in run.done_stages if stage.answer]
    usages = [answer.proposal.usage for answer in answers if answer.proposal]
    costs = [usage.cost for usage in usages]
    return RunFigures(
        engineer=engineer,
        seed=run.spec.seed,
        valid=pooled(test.last),
        optimal=pooled(test.last, "optimal_rate"),
        valid_first=pooled(test.first),
        env_steps=run.env_steps,
        tokens=sum(usage.prompt_tokens + usage.completion_tokens for usage in usages),
        cost=None if any(cost is None for cost in costs) else sum(cost or 0.0 for cost in costs),
        incidents=len(run.incidents()),
    )


def rows(figures: Sequence[RunFigures], engineers: Sequence[str]) -> list[Row]:
    """One row per engineer, in the order given. Differences are paired: seed by seed."""
    return [
        _row(name, figures, [base for base in BASELINES if base in engineers and base != name]) for name in engineers
    ]


def _row(name: str, figures: Sequence[RunFigures], baselines: Sequence[str]) -> Row:
    own = {one.seed: one for one in figures if one.engineer == name}

    def paired(base: str) -> list[float]:
        others = {one.seed: one.valid for one in figures if one.engineer == base}
        return [one.valid - others[seed] for seed, one in own.items() if seed in others]

    costs = [one.cost for one in own.values()]
    return Row(
        engineer=name,
        seeds=len(own),
        valid=t_mean([one.valid for one in own.values()]),
        optimal=t_mean([one.optimal for one in own.values()]),
        gain=t_mean([one.valid - one.valid_first for one in own.values()]),
        against={base: t_mean(paired(base)) for base in baselines},
        tokens=sum(one.tokens for one in own.values()) / len(own),
        cost=None if any(cost is None for cost in costs) else sum(cost or 0.0 for cost in costs) / len(own),
        env_steps=sum(one.env_steps for one in own.values()) / len(own),
        incidents=sum(one.incidents for one in own.values()),
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
        f"{comparison.preset}: {counted(seeds, 'paired seed')}, {comparison.budget:,} env steps each, % of the test suite, 95 % intervals",
        "means over seeds, Student's t intervals; gain over the first stage and differences paired by seed",
    )
    bases = [base for base in BASELINES if any(base in row.against for row in comparison.rows)]
    for heading in (
        "engineer",
        "valid",
        "optimal",
        "gain",
        *(f"− {base}" for base in bases),
        "tokens",
        "cost",
    ):
        found.add_column(heading, justify="left" if heading == "engineer" else "right", no_wrap=True)
    for row in comparison.rows:
        found.add_row(
            row.engineer,
            row.valid.percent(),
            row.optimal.percent(),
            row.gain.percent(signed=True),
            *(row.against[base].percent(signed=True) if base in row.against else "" for base in bases),
            f"{row.tokens:,.0f}",
            "unknown" if row.cost is None else f"${row.cost:.4f}",
        )
    return found


def as_json(comparison: Comparison) -> dict[str, object]:
    return asdict(comparison)


def write(comparison: Comparison, out: Path) -> Path:
    """The figures beside the runs."""
    path = out / "comparison.json"
    atomic.write_json(path, as_json(comparison))
    return path
