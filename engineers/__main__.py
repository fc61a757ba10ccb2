"""``engineers`` and ``python -m engineers``: try an engineer on a report file, print its prompt."""

from __future__ import annotations

import sys


def main() -> None:
    from engineers.early import end_without_traceback

    end_without_traceback()
    from engineers.current_folder import leave_it_alone
    from engineers.ending import ends_when_asked
    from engineers.extras import require
    from engineers.printing import prints_what_it_can

    with prints_what_it_can(), ends_when_asked("interrupted"):
        try:
            leave_it_alone()
            require("typer", "rich", extra="prompt")
        except ImportError as error:
            sys.exit(f"error: {error}")
        from engineers.cli import main as begin

        begin()


if __name__ == "__main__":
    main()
