"""The command that makes an OpenEnv folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from envtuning.cli.arguments import Trusted, parse_settings
from envtuning.cli.base import app, console


@app.command()
def openenv(
    do: Annotated[Literal["export"], typer.Argument(help="export: write the folder.")],
    folder: Annotated[Path, typer.Argument(help="A new folder; the environment gets its name.")],
    world: Annotated[str, typer.Option(help="lakes, tools, or your own as package.module:object.")] = "lakes",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="An option of the world and its value: mode=turns. May be given several times."),
    ] = None,
    trust: Trusted = None,
) -> None:
    """Write a world's text environment as a folder that openenv validates, builds, serves and pushes."""
    from envtuning.openenv.export import export

    made = export(folder, world, parse_settings(settings))
    console.print(f"{made}: `cd {made}`, `python -m server.app` serves it; `openenv validate`, `openenv push`")
