"""``python -m envtuning.worlds.bfcl install | verify``: see ``command``."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    from engineers.shared.early import end_without_traceback

    end_without_traceback()
    from engineers.shared.ending import ends_when_asked
    from engineers.shared.printing import printing_any_character

    with printing_any_character(), ends_when_asked("interrupted"):
        from envtuning.worlds.bfcl.command import main

        sys.exit(main())
