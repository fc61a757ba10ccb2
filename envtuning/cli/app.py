"""The command line, and how it reports errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Annotated
from urllib.parse import urlsplit

import typer

from engineers import UnknownEngineer, own
from envtuning.loop.ask import EngineerUnavailable
from envtuning.loop.observer import UnknownObserver
from envtuning.loop.stage import RunStopped
from envtuning.runs import atomic
from envtuning.runs.checked import RunError
from envtuning.runs.spec import SpecError
from envtuning.show.console import make_console, print_error
from envtuning.trainees import UnknownTrainee
from envtuning.worlds.registry import UnknownWorld
from envtuning.worlds.world import InfeasibleConfig, TooFewCases

app = typer.Typer(
    name="envtuning",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
console = make_console()

# errors that a user can mend
MENDABLE = (
    SpecError, RunError, RunStopped, UnknownTrainee, UnknownWorld, UnknownObserver, EngineerUnavailable,
    InfeasibleConfig, TooFewCases, ImportError, atomic.StorageError, atomic.RunLocked, UnknownEngineer,
)  # fmt: skip


def print_version(asked: bool) -> None:
    if asked:
        console.print(f"envtuning {version('mapf-frozenlake')}")
        raise typer.Exit


@app.callback()
def main(
    show_version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Train in stages, validate, report, and let an engineer write the next stage's config."""


@contextmanager
def trusting(named: list[str] | None, *said: str | None) -> Iterator[None]:
    """Import only what the command line names: by ``--trust``, or as the engineer, observer or setting that it asks for."""
    words = [word.strip().partition("=")[2] or word.strip() for word in said if word]
    modules = [word.partition("/")[0].partition(":")[0] for word in words if ":" in word.partition("/")[0]]
    hosts = [host for word in words if (host := urlsplit(word.partition("/")[2]).hostname)]
    own.trust_only([*(named or ()), *modules, *hosts])
    try:
        yield
    finally:
        own.trust_only(None)


@contextmanager
def errors_in_one_sentence() -> Iterator[None]:
    """What a user can mend is told in one sentence, without a traceback."""
    try:
        yield
    except MENDABLE as error:
        print_error("error", str(error))
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        print_error("interrupted", "the same command continues where it stopped; so does `envtuning resume` for a run")
        raise typer.Exit(130) from None
