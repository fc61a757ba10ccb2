"""The command ``exam``: any engineer scored by real trainings, in minutes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envtuning.cli.arguments import OnRay, Trusted, listed, trust_engineers
from envtuning.cli.base import app, console
from envtuning.errors import SpecError
from envtuning.show.pulse import Pulse


@app.command()
def exam(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[verify FILE]",
            help="'verify' and a file of --json: play it again. No code that it names is imported.",
            show_default=False,
        ),
    ] = None,
    engineer: Annotated[
        str | None,
        typer.Option(
            callback=trust_engineers,
            help="Engineers, separated by commas: rules, mine:make, openai/gpt-5-mini, replay/FOLDER, …. "
            "Default: all of this package that read results and ask no model.",
            show_default=False,
        ),
    ] = None,
    family: Annotated[
        str, typer.Option(help="Families, separated by commas; 'all' for all that have a name.")
    ] = "codes-slow",
    roots: Annotated[int, typer.Option(min=1, max=10_000, help="Number of roots.")] = 4,
    first: Annotated[int, typer.Option(min=0, help="The first root's seed.")] = 5000,
    trainings: Annotated[int, typer.Option(min=1, max=100, help="Training seeds of each root.")] = 1,
    decisions: Annotated[
        int, typer.Option(help="Stages of a training: the engineer decides before all but the first.")
    ] = 6,
    reads: Annotated[
        str,
        typer.Option(
            help="What a report has: 'scores' beside successes, 'success' alone, 'shuffled scores'; or a control, 'yoked' or 'mean of others'."
        ),
    ] = "scores",
    max_cost: Annotated[float | None, typer.Option(help="US dollars for all questions to models together.")] = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds in which an engineer must answer.")] = 600.0,
    out: Annotated[Path, typer.Option(help="Folder of the sittings; an interrupted exam continues there.")] = Path(
        "runs/exam"
    ),
    json: Annotated[Path | None, typer.Option(help="Write all sittings and scores to this file.")] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of sittings at a time, each in its own process. Default: one for each core, at most 3; "
            "1 if an engineer may ask a model, as one of your own may.",
            show_default=False,
        ),
    ] = None,
    ray: OnRay = False,
    trust: Trusted = None,
) -> None:
    """Score engineers by real trainings of small transformers: points over the best schedule that reads nothing."""
    try:
        with Pulse(console) as pulse:
            pulse.now("PyTorch is loaded")
            from envtuning.cli import exam_report
    except ImportError as error:
        from engineers.shared.extras import needs

        raise needs("envtuning exam", error, "exam") from error
    if words:
        if len(words) != 2 or words[0] != "verify":
            raise SpecError(f"exam {' '.join(words)!r:.60}: give 'verify FILE', or options alone")
        raise typer.Exit(0 if exam_report.verified(Path(words[1]), console, jobs, ray) else 1)
    exam_report.examine(
        engineers=None if engineer is None else listed(engineer),
        families=family, roots=range(first, first + roots), trainings=trainings, decisions=decisions, reads=reads,
        max_cost=max_cost, timeout=timeout, out=out, json=json, jobs=jobs, ray=ray, console=console,
    )  # fmt: skip
