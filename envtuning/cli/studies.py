"""The command that carries out many runs: compare."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from engineers.plain.open_loop import OPEN_LOOP
from engineers.registry import DEFAULT_ENGINEER
from engineers.shared.counts import counted
from engineers.shared.own import code_of
from envtuning.cli.arguments import (
    OnRay,
    Settings,
    Trusted,
    adjusted,
    listed,
    parse_seeds,
    parse_settings,
    trust_engineers,
)
from envtuning.cli.base import app, console
from envtuning.cli.runs import note_out_of_reach
from envtuning.loop.observer import Observers
from envtuning.runs.spec import SpecError, keys_of, load_spec
from envtuning.show.console import ConsoleObserver
from envtuning.show.pace import Pace
from envtuning.show.pulse import Pulse
from envtuning.studies import beyond
from envtuning.studies.compare import Comparison, comparison_of, tables, write
from envtuning.studies.preregistered import EXAMPLE, StudySpec, load_study, part_of
from envtuning.studies.study import Arms, Job, execute, raise_unless_comparable

ENGINEERS = f"fixed,random,uniform,{DEFAULT_ENGINEER}"
SEEDS = "3"
NAMED = 4  # of the runs at work; a cluster may have hundreds


def print_example(asked: bool) -> None:
    if asked:
        console.print(EXAMPLE.read_text(encoding="utf-8"), end="")
        raise typer.Exit


@app.command()
def compare(
    what: Annotated[
        str,
        typer.Argument(help="The preset or file that all arms run, as for `envtuning run`; or a file that has arms."),
    ] = "engineer",
    engineers: Annotated[
        str | None,
        typer.Option(
            callback=trust_engineers,
            help=f"Engineers' names, separated by commas (default: {ENGINEERS}). These read nothing: {', '.join(OPEN_LOOP)}, ladder. "
            "Of a file that has arms, only these arms.",
        ),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            help=f"'3' for seeds 0 to 2, or a list: 0,4,7 (default: {SEEDS}). Of a file that has seeds, only the first 3, or these."
        ),
    ] = None,
    stages: Annotated[int | None, typer.Option(min=1, help="Number of stages, as for `envtuning run`.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of all runs; an interrupted comparison continues there. Default: runs/compare/NAME."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of runs at a time, each in its own process.")] = 1,
    ray: OnRay = False,
    table: Annotated[bool, typer.Option("--table", help="Only print the table of the finished runs.")] = False,
    example: Annotated[
        bool,
        typer.Option("--example", callback=print_example, is_eager=True, help="Print a file that has arms, to copy."),
    ] = False,
    settings: Settings = None,
    trust: Trusted = None,
) -> None:
    """Compare engineers with equal budgets, paired seeds and the same first stage, in one table. WHAT may also be a comparison that was written
    down in advance: its arms, its seeds, its test (docs/runs.md)."""
    if "arms" in keys_of(what):
        if settings or stages is not None:
            raise SpecError(f"{what} says what is compared: write --set and --stages into its preset's file")
        study = load_study(what)
        arms, chosen = part_of(study, engineers), seeds_of(study, seeds)
    else:
        spec = adjusted(load_spec(what, changes=parse_settings(settings)), stages=stages)
        names, chosen = listed(engineers or ENGINEERS), parse_seeds(seeds or SEEDS)
        study = StudySpec.of(spec, names, chosen)
        arms = study.specs()
    folder = out or Path("runs/compare") / study.name
    with Pulse(console) as pulse:
        if not table:
            check_arms(study, arms, pulse)
            carry_out(arms, chosen, folder, pulse, jobs=jobs, ray=ray)
        pulse.now("the table is made")
        result = comparison_of(study, folder)
    show_result(result, folder, trust or ())


def check_arms(study: StudySpec, arms: Arms, pulse: Pulse) -> None:
    """Before the first run, refuse whatever would stop a later one, and note what of the target no stage can train on."""
    pulse.now("the arms are checked")
    plans = raise_unless_comparable(arms)
    beyond.raise_unless_playable(study, plans)
    note_out_of_reach(*plans.values())


def show_result(result: Comparison, folder: Path, trust: Sequence[str]) -> None:
    """Print the tables, and where to find more; ``trust`` is what the next command needs, too."""
    for found in tables(result):
        console.print(found)
    console.print(f"figures: {write(result, folder)}")
    again = "".join(f" --trust {name}" for name in trust)
    console.print(f"`envtuning report {folder}{again}` puts all runs on one page")


def carry_out(arms: Arms, seeds: Sequence[int], folder: Path, pulse: Pulse, *, jobs: int, ray: bool) -> None:
    """Do all unfinished runs, and tell of each. One at a time tells what happens inside; several tell which are at work."""
    alone = jobs == 1 and not ray
    at_work: list[Path] = []

    def kept(runs: Sequence[Job]) -> None:
        if runs:
            console.print(from_before(runs, len(arms) * len(seeds)))

    def began(job: Job) -> None:
        if not alone:
            at_work.append(job.folder)
            console.print(f"started {job.folder}")
            pulse.now(in_brief(at_work))

    def ended(job: Job, pace: Pace) -> None:
        console.print(f"finished {job.folder} ({pace})")
        if not alone:
            at_work.remove(job.folder)
            pulse.now(in_brief(at_work))

    observer = Observers([pulse, ConsoleObserver(console)]) if alone else None
    execute(arms, seeds, folder, jobs=jobs, ray=ray, observer=observer, kept=kept, began=began, ended=ended)


def from_before(kept: Sequence[Job], of: int) -> str:
    """How many runs are not done again, and the folders of those whose engineer is somebody's own: its code may have changed since."""
    own = dict.fromkeys(str(job.folder.parent) for job in kept if code_of(job.spec.engineer.name))
    after = f"; after a change of your engineer, remove {' and '.join(own)}" if own else ""
    return f"{len(kept)} of {counted(of, 'run')} {'is' if len(kept) == 1 else 'are'} kept from before{after}"


def in_brief(at_work: Sequence[Path]) -> str:
    """``at work: rules/seed0, fixed/seed1 and 3 more``."""
    if not at_work:
        return "the processes end"
    named = ", ".join("/".join(folder.parts[-2:]) for folder in at_work[:NAMED])
    more = f" and {len(at_work) - NAMED} more" if len(at_work) > NAMED else ""
    return f"at work: {named}{more}"


def seeds_of(study: StudySpec, wanted: str | None) -> list[int]:
    """Of a file's seeds, '3' is the first three, and '33200,33204' is these two; None is all of them."""
    if wanted is None:
        return list(study.seeds)
    chosen, there = parse_seeds(wanted), ", ".join(map(str, study.seeds))
    if "," not in wanted:
        if len(chosen) > len(study.seeds):
            raise SpecError(
                f"--seeds {wanted}: the seeds of {study.name} are {there}; name one alone as '{study.seeds[0]},'"
            )
        return list(study.seeds[: len(chosen)])
    for seed in chosen:
        if seed not in study.seeds:
            raise SpecError(f"{seed} is not a seed of {study.name}: its seeds are {there}")
    return chosen
