"""``python -m envtuning`` and the ``envtuning`` command."""

from __future__ import annotations

import sys

from engineers.current_folder import leave_it_alone
from engineers.ending import ends_when_asked
from engineers.printing import prints_what_it_can

COMMAND_LINE = ("typer", "rich", "yaml", "filelock", "jinja2")  # what no command starts without


def main() -> None:
    with prints_what_it_can(), ends_when_asked("interrupted: `envtuning resume` continues a run where it stopped"):
        _main()


def _main() -> None:
    try:
        leave_it_alone()
    except ImportError as error:
        sys.exit(f"error: {error}")
    try:
        from envtuning.cli import app
    except ImportError as error:
        if error.name not in COMMAND_LINE:
            raise
        from envtuning.base_help import answer

        said, status = answer(sys.argv[1:], error.name)
        print(said, file=sys.stderr if status else sys.stdout)
        sys.exit(status)
    app()


if __name__ == "__main__":
    main()
