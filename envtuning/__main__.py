"""``python -m envtuning`` and the ``envtuning`` command."""

from __future__ import annotations

import signal
import sys

from envtuning.extras import needs


def main() -> None:
    signal.signal(
        signal.SIGTERM, _interrupted
    )  # asked to end by a scheduler, as by Ctrl-C: what runs is left as it should be
    try:
        _main()
    except KeyboardInterrupt:  # also while modules are imported
        print("interrupted: `envtuning resume` goes on with a run where it was", file=sys.stderr, flush=True)
        sys.exit(130)


def _interrupted(number: int, frame: object) -> None:
    raise KeyboardInterrupt


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
