"""The base of every command: the command line itself, and how it reports errors. It imports nothing slow."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from engineers.shared import own
from engineers.shared.errors import UserError
from envtuning.show.terminal import make_console, print_error


class Commands(TyperGroup):
    """The group of all commands, which reports their errors. What a command line trusts, it trusts until its command ends."""

    def invoke(self, ctx: Any) -> Any:
        with own.also_trusting(()), errors_in_one_sentence():
            return super().invoke(ctx)


app = typer.Typer(
    name="envtuning",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
console = make_console()


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
def errors_in_one_sentence() -> Iterator[None]:
    """Prints an error that a user can correct as a sentence, without a traceback."""
    try:
        yield
    except (UserError, ImportError) as error:
        print_error("error", str(error))
        raise typer.Exit(1) from None
    except OSError as error:
        if error.errno == errno.EPIPE:  # the reader of the output has gone, so no message is needed
            raise
        from envtuning.atomic import in_a_sentence

        print_error("error", in_a_sentence(error))
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        print_error("interrupted", "the same command continues where it stopped; so does `envtuning resume` for a run")
        raise typer.Exit(130) from None
