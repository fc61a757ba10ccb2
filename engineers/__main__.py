"""``engineers`` and ``python -m engineers``: try an engineer on a report file, print its prompt."""

from __future__ import annotations

import sys


def main() -> None:
    from engineers.shared.early import end_without_traceback

    end_without_traceback()
    from engineers.shared.current_folder import import_nothing_from_here
    from engineers.shared.ending import ends_when_asked
    from engineers.shared.extras import require
    from engineers.shared.printing import printing_any_character

    with printing_any_character(), ends_when_asked("interrupted"):
        try:
            import_nothing_from_here()
            require("typer", "rich", extra="prompt")
        except ImportError as error:
            sys.exit(f"error: {error}")
        from engineers.cli import main as begin

        begin()


if __name__ == "__main__":
    main()
