"""Commands that carry out one run: run, resume."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from engineers.plain.open_loop import OPEN_LOOP
from envtuning.cli.arguments import (
    Engineer,
    Observed,
    Run,
    Settings,
    Trusted,
    adjusted,
    parse_seeds,
    parse_settings,
    run_name,
)
from envtuning.cli.base import app, console
from envtuning.loop import run as loop
from envtuning.loop.observer import Observers, observer_at
from envtuning.runs.log import RunLog
from envtuning.runs.plan import Plan
from envtuning.runs.resolve import note_of, resolve
from envtuning.runs.spec import load_spec
from envtuning.runs.tasks import next_task
from envtuning.show.console import ConsoleObserver, summary
from envtuning.show.page import write_page


@app.command()
def run(
    what: Annotated[str, typer.Argument(help="A preset's name (see `envtuning presets`), or a YAML or JSON file.")],
    engineer: Engineer = None,
    seeds: Annotated[
        str | None, typer.Option(help="'3' for seeds 0 to 2, or a list: 0,4,7. Each seed has its own run folder.")
    ] = None,
    stages: Annotated[
        int | None, typer.Option(min=1, help="Number of stages; if the file has fewer, its last one is repeated.")
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(help="The parts of the report in a language model's prompt: V1 to V6, informed or full."),
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(min=0, help="Upper limit in US dollars for the engineer in a run.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The run's folder; with several seeds, the folder that holds them.")
    ] = None,
    settings: Settings = None,
    observer: Observed = None,
    trust: Trusted = None,
) -> None:
    """Run a preset or a file to its end. A run that was interrupted continues where it stopped."""
    spec = load_spec(what, changes=parse_settings(settings))
    spec = adjusted(spec, engineer=engineer, stages=stages, context=context, max_cost=max_cost)
    if engineer is not None and engineer not in OPEN_LOOP and not spec.asks_an_engineer:
        console.print(f"--engineer {engineer} has no effect: no stage of {spec.name} has config: engineer")
    plan = resolve(spec)
    note_out_of_reach(plan)
    chosen = parse_seeds(seeds) if seeds else [spec.seed]
    for seed in chosen:
        named = (out or Path("runs")) / f"{run_name(spec)}-seed{seed}"
        folder = out if out is not None and len(chosen) == 1 else named
        run_and_report(RunLog.create(folder, plan.seeded(seed)), observer)


@app.command()
def resume(folder: Run, observer: Observed = None, trust: Trusted = None) -> None:
    """Continue an interrupted run. The result is the same as without the interruption."""
    run_and_report(RunLog.open(folder), observer)


def note_out_of_reach(*plans: Plan) -> None:
    """Warn before the first run about what of the target none of its stages can train on."""
    for note in dict.fromkeys(map(note_of, plans)):
        if note is not None:
            console.print(f"note: {note}")


def run_and_report(one: RunLog, observers: list[str] | None = None) -> None:
    """Continue the run, then print its tables and the path of its page."""
    heard_by = Observers([ConsoleObserver(console), *map(observer_at, observers or [])])
    if next_task(one.plan, one.state) is None:
        one.verify(checkpoints=True)
        console.print(f"{one.path} is finished; remove it or choose another --out to run it again")
    else:
        loop.continue_run(one, heard_by)
    console.print(summary(one))
    console.print(f"report page: {write_page([one], one.path / 'report.html')}")
