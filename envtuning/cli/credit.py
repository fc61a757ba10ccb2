"""The command that measures which change of a proposal earned its gain."""

from __future__ import annotations

from typing import Annotated

import typer

from envtuning.cli.arguments import Run, Trusted
from envtuning.cli.base import app, console, trusting
from envtuning.runs.log import RunLog
from envtuning.studies import credit as crediting


@app.command()
def credit(
    folder: Run,
    stage: Annotated[int, typer.Option(min=1, help="The stage that was trained on the proposal.")],
    seeds: Annotated[
        int, typer.Option(min=crediting.FEWEST_SEEDS, help="Number of paired seeds.")
    ] = crediting.FEWEST_SEEDS,
    cases: Annotated[
        int, typer.Option(min=1, help="Number of test cases for each slice of the target.")
    ] = crediting.PER_SLICE,
    trust: Trusted = None,
) -> None:
    """Train a stage again, each time without one of the proposal's changes, to measure which change earned the gain."""
    with trusting(trust):
        run = RunLog.open(folder)
        run.verify()
        found = crediting.credit(
            run, stage, seeds=seeds, per_slice=cases, ended=lambda line, pace: console.print(f"{line} ({pace})")
        )
        console.print(crediting.table(found))
        console.print(f"figures: {crediting.write(found, run)}")
