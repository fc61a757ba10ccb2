"""The command that lists the presets, without making a world or loading the loop."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from engineers.shared.counts import in_words
from envtuning.cli.base import app, console
from envtuning.runs.spec import SpecError, load_spec, preset_names, preset_text
from envtuning.worlds.world import About


@app.command()
def presets(
    name: Annotated[str | None, typer.Argument(help="Print this preset's file, to copy and change.")] = None,
) -> None:
    """List the presets, or print one."""
    if name is not None:
        if name not in preset_names():
            raise SpecError(f"no preset {name!r}: the presets are {', '.join(preset_names())}")
        console.print(preset_text(name), end="")
        return
    listing = Table(box=None)
    for heading in ("preset", "stages", "budget", "what it is"):
        listing.add_column(heading, justify="right" if heading in ("stages", "budget") else "left")
    for each in preset_names():
        spec = load_spec(each)
        listing.add_row(
            each,
            str(len(spec.stages)),
            f"{spec.budget:,} {in_words(spec.unit or About.unit)}",
            spec.description,
        )
    console.print(listing)
