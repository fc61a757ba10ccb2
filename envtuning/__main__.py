"""``python -m envtuning`` and the ``envtuning`` command."""

from __future__ import annotations

import sys

from engineers.ending import ends_when_asked
from envtuning.extras import needs


def main() -> None:
    with ends_when_asked("interrupted: `envtuning resume` continues a run where it stopped"):
        _main()


def _main() -> None:
    try:
        from envtuning.cli import app
    except ImportError as error:
        if error.name in ("typer", "rich", "yaml", "jinja2"):
            sys.exit(needs("the command", error).msg)
        raise
    app()


if __name__ == "__main__":
    main()
