"""``python -m envtuning`` and the ``envtuning`` command."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # without typing, and all else inside of functions: Ctrl-C has no answer before main
if TYPE_CHECKING:
    from collections.abc import Sequence

    from typer import Typer

COMMAND_LINE = ("typer", "rich", "yaml", "filelock", "jinja2")  # modules that every command needs


def main() -> None:
    from engineers.shared.early import end_without_traceback

    end_without_traceback()
    from engineers.shared.ending import ends_when_asked
    from engineers.shared.printing import printing_any_character

    with printing_any_character(), ends_when_asked("interrupted: `envtuning resume` continues a run where it stopped"):
        _main()


def _main() -> None:
    from engineers.shared.current_folder import import_nothing_from_here
    from envtuning import base_help

    try:
        import_nothing_from_here()
    except ImportError as error:
        sys.exit(f"error: {error}")
    try:
        app = _app(sys.argv[1:])
    except ImportError as error:
        if error.name not in COMMAND_LINE:
            raise
        said, status = base_help.answer(sys.argv[1:], error.name)
        print(said, file=sys.stderr if status else sys.stdout)
        sys.exit(status)
    app()


def _app(arguments: Sequence[str]) -> Typer:
    """The command line with the parts that these arguments need; a list of the commands imports no command."""
    import os

    from envtuning import base_help
    from envtuning.cli import MODULES, app_with

    known = base_help.commands()
    named = next((word for word in arguments if word in known), None)
    if named is not None:
        return app_with([known[named].module])
    if "_ENVTUNING_COMPLETE" in os.environ or not all(word.startswith("-") for word in arguments):
        return app_with(MODULES)  # a shell completes words, or the command is unknown
    app = app_with([])
    for name, command in known.items():
        app.command(name, help=command.said)(lambda: None)
    return app


if __name__ == "__main__":
    main()
