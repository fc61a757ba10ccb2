"""``python -m engineers``: try an engineer on a report file alone, see what it would be asked, list who there is."""

from __future__ import annotations

from engineers.backends.making import require

if __name__ == "__main__":
    require("typer", "rich", extra="prompt")
    from engineers.cli import main

    main()
