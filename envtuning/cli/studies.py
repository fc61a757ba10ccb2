"""Commands that carry out many runs: compare, study."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from engineers.plain.open_loop import OPEN_LOOP
from engineers.registry import DEFAULT_ENGINEER
from envtuning.cli.arguments import (
    OnRay,
    Settings,
    Trusted,
    adjusted,
    listed_seeds,
    parse_seeds,
    parse_settings,
    trust_engineers,
)
from envtuning.cli.base import app, console
from envtuning.cli.runs import note_out_of_reach
from envtuning.runs.plan import Plan
from envtuning.runs.spec import load_spec
from envtuning.show.console import ConsoleObserver
from envtuning.studies import beyond
from envtuning.studies import compare as comparing
from envtuning.studies.preregistered import EXAMPLE, load_study, part_of, seeds_of
from envtuning.studies.study import Arms, execute, raise_unless_comparable
from envtuning.studies.summary import markdown, summarise, write


@app.command()
def compare(
    what: Annotated[
        str, typer.Argument(help="The preset or file that all arms run, as for `envtuning run`.")
    ] = "engineer",
    engineers: Annotated[
        str,
        typer.Option(
            callback=trust_engineers,
            help=f"Engineers' names, separated by commas. These read nothing: {', '.join(OPEN_LOOP)}, ladder.",
        ),
    ] = f"fixed,random,uniform,{DEFAULT_ENGINEER}",
    seeds: Annotated[str, typer.Option(help="'3' for seeds 0 to 2, or a list: 0,4,7.")] = "3",
    stages: Annotated[int | None, typer.Option(min=1, help="Number of stages, as for `envtuning run`.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of all runs; an interrupted comparison continues there. Default: runs/compare/PRESET."
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of runs at a time, each in its own process.")] = 1,
    ray: OnRay = False,
    settings: Settings = None,
    trust: Trusted = None,
) -> None:
    """Compare engineers with equal budgets, paired seeds and the same first stage, in one table."""
    spec = adjusted(load_spec(what, changes=parse_settings(settings)), stages=stages)
    folder, chosen = out or Path("runs/compare") / spec.name, parse_seeds(seeds)
    arms = comparing.arms_of(spec, [name.strip() for name in engineers.split(",") if name.strip()])
    carry_out(arms, raise_unless_comparable(arms), chosen, folder, jobs, ray)
    result = comparing.comparison_of(spec, arms, chosen, folder)
    console.print(comparing.table(result))
    console.print(f"figures: {comparing.write(result, folder)}")
    again = "".join(f" --trust {name}" for name in trust or ())
    console.print(f"`envtuning report {folder}{again}` puts all runs on one page")


def carry_out(arms: Arms, plans: Mapping[str, Plan], seeds: list[int], folder: Path, jobs: int, ray: bool) -> None:
    """Do the unfinished runs and print their progress; with one run at a time, also its events."""
    note_out_of_reach(*plans.values())
    alone = jobs == 1 and not ray
    execute(
        arms,
        seeds,
        folder,
        jobs=jobs,
        ray=ray,
        observer=ConsoleObserver(console) if alone else None,
        began=lambda job: None if alone else console.print(f"started {job.folder}"),
        ended=lambda job, pace: console.print(f"finished {job.folder} ({pace})"),
    )


def print_example(asked: bool) -> None:
    if asked:
        console.print(EXAMPLE.read_text(encoding="utf-8"), end="")
        raise typer.Exit


@app.command()
def study(
    file: Annotated[
        Path, typer.Argument(help="The study's file: preset, arms, seeds, test, trivial answers (docs/runs.md).")
    ],
    arms: Annotated[str | None, typer.Option(help="Only these arms, separated by commas.")] = None,
    seeds: Annotated[str | None, typer.Option(help="Only these of its seeds, separated by commas.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of all studies; the runs of this one are in OUT/NAME.")] = Path(
        "runs/studies"
    ),
    jobs: Annotated[int, typer.Option(min=1, help="Number of runs at a time, each in its own process.")] = 1,
    ray: OnRay = False,
    table: Annotated[bool, typer.Option("--table", help="Only print the table of the finished runs.")] = False,
    example: Annotated[
        bool, typer.Option("--example", callback=print_example, is_eager=True, help="Print a study's file, to copy.")
    ] = False,
    trust: Trusted = None,
) -> None:
    """Do the unfinished runs of a study (a comparison that was written down in advance), and print its table."""
    written = load_study(file)
    folder = out / written.name
    if not table:
        chosen = part_of(written, arms)
        plans = raise_unless_comparable(chosen)
        beyond.raise_unless_playable(written, plans)
        carry_out(chosen, plans, seeds_of(written, listed_seeds(seeds)), folder, jobs, ray)
    summary = summarise(written, folder)
    console.print(markdown(summary), markup=False)
    console.print(f"figures: {write(summary, folder)}")
