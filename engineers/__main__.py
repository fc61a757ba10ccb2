"""``python -m engineers``: try an engineer on a report file, print its prompt, serve a model."""

from __future__ import annotations

import sys

from engineers.ending import ends_when_asked
from engineers.extras import require
from engineers.printing import prints_what_it_can

if __name__ == "__main__":
    with prints_what_it_can(), ends_when_asked("interrupted"):
        try:
            require("typer", "rich", extra="prompt")
        except ImportError as error:
            sys.exit(f"error: {error}")
        from engineers.cli import main

        main()
