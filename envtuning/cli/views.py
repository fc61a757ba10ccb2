"""Commands that show runs: show, report, tensorboard, replay."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.live import Live
from rich.text import Text

from envtuning import atomic
from envtuning.cli.arguments import Run, Runs, Trusted
from envtuning.cli.base import app, console
from envtuning.errors import RunError
from envtuning.runs.log import RunLog
from envtuning.runs.tasks import next_task
from envtuning.show.console import run_table, summary
from envtuning.show.page import common_folder, write_page
from envtuning.show.tensorboard import EventFiles
from envtuning.studies.study import run_folders
from envtuning.worlds.world import Film


@app.command()
def show(
    folders: Runs,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Keep the table up to date until the run ends.")] = False,
    trust: Trusted = None,
) -> None:
    """Show the table of each run: configs, costs, results and incidents."""
    runs = opened(folders)
    for one in runs:
        if len(runs) > 1:
            console.print(str(one.path), style="bold")
        if watch:
            watch_table(one)
        console.print(summary(one))
        if next_task(one.plan, one.state) is not None:
            state = "is running" if atomic.is_locked(one.path) else f"stopped: `envtuning resume {one.path}` continues"
            console.print(f"this run {state}")


@app.command()
def report(
    folders: Runs,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The page's file. Default: report.html in the run's folder, or in the folder above several runs."
        ),
    ] = None,
    trust: Trusted = None,
) -> None:
    """Write a self-contained HTML page about one run, or about several runs side by side."""
    runs = opened(folders)
    folder = folders[0] if len(folders) == 1 else common_folder([one.path for one in runs])
    page = write_page(runs, out or folder / "report.html")
    console.print(f"report: {page}")


@app.command()
def tensorboard(
    folders: Runs,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Keep the files up to date until the runs end.")] = False,
    trust: Trusted = None,
) -> None:
    """Write the metrics as TensorBoard event files, in the folder `tensorboard` of each run. `tensorboard --logdir RUN` shows them."""
    files = [EventFiles(one) for one in opened(folders)]
    for each in files:
        console.print(f"event files: {each.catch_up()}")
    while watch and any(atomic.is_locked(each.run.path) for each in files):
        time.sleep(2)
        for each in files:
            each.catch_up()
    for each in files:
        each.close()


@app.command()
def replay(
    folder: Run,
    stage: Annotated[int, typer.Option(min=0, help="The stage whose validation is shown.")] = 0,
    case: Annotated[
        int | None, typer.Option(min=0, help="The number of the board. Default: the first that failed.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Save a film (.gif or .svg) instead of showing it here.")] = None,
    seconds: Annotated[float, typer.Option(min=0, help="Seconds per step.")] = 0.5,
    trust: Trusted = None,
) -> None:
    """Show how the policy played a validation board."""
    one = RunLog.open(folder)
    film = find_film(one, stage, case)
    if out is not None:
        save_film(film, out, seconds)
        console.print(f"{out}: {film.title}")
        return
    show_film(film.frames, seconds)
    console.print(f"stage {stage}, {film.title}")
    if film.reply:
        console.print(f"the reply: {film.reply}")


def save_film(film: Film, out: Path, seconds: float) -> None:
    with atomic.storage_errors(out):
        if film.save is not None:
            try:
                film.save(out, seconds)
            except ValueError as error:  # an unknown file ending
                raise RunError(str(error)) from error
        elif out.suffix.lower() == ".svg":
            out.write_text(film.svg, encoding="utf-8")
        else:
            raise RunError(f"{out.name}: a film of this world is saved as .svg")


def watch_table(one: RunLog) -> None:
    """Keep the table up to date while a process works on the run."""
    with Live(run_table(one), console=console, refresh_per_second=2) as live:
        while next_task(one.plan, one.state) is not None and atomic.is_locked(one.path):
            time.sleep(0.5)
            one.refresh()
            live.update(run_table(one))


def opened(folders: list[Path]) -> list[RunLog]:
    """The runs in these folders: a folder is a run, or holds runs. Other folders among several are skipped."""
    found: list[RunLog] = []
    for folder in folders:
        here = [folder] if (folder / "run.json").is_file() else run_folders(folder)
        if not here and len(folders) > 1:
            console.print(f"{folder} is not a run: skipped")
        elif not here:
            here = [folder]  # for its error, which says what a run folder is
        found += [RunLog.open(each) for each in here]
    if not found:
        raise RunError(f"none of {len(folders)} folders is a run: `envtuning run` makes one")
    return found


def find_film(one: RunLog, stage: int, case: int | None) -> Film:
    """The film of a case of a stage's last validation; by default the first case that failed."""
    if stage >= len(one.state.done):
        raise RunError(
            f"stage {stage} of {one.path} has no episodes: its {len(one.state.done)} finished stages count from 0"
        )
    recorded, world = one.state.stages[stage].episodes(), one.plan.world
    if not recorded:
        played = [str(place) for place, done in enumerate(one.state.stages) if done.episodes()]
        there = f"give --stage {' or '.join(played)}" if played else "no stage was, so far"
        raise RunError(f"stage {stage} of {one.path} was not validated, so it has no episodes: {there}")
    if case is None:
        case = next((episode.case for episode in recorded if not episode.succeeded), 0)
    if case >= len(recorded):
        raise RunError(f"case {case}: stage {stage} has cases 0 to {len(recorded) - 1}")
    film = one.film(stage, one.cases("validation"), recorded[case])
    if film is None:
        raise RunError(
            f"the world {world.about.name!r} has no films: `envtuning report {one.path}` shows the failed cases"
        )
    return film


def show_film(pictures: Sequence[str], seconds: float) -> None:
    """Show the pictures in place on a terminal; otherwise print one below the other."""
    if not console.is_terminal:
        console.print(Text("\n\n".join(Text.from_ansi(picture).plain for picture in pictures)))
        return
    with Live(console=console, auto_refresh=False) as live:
        for picture in pictures:
            live.update(Text.from_ansi(picture), refresh=True)
            time.sleep(seconds)
