"""``python -m envtuning.worlds.bfcl install | verify | templates``: see ``command``."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    from engineers.early import end_without_traceback

    end_without_traceback()
    from engineers.ending import ends_when_asked
    from engineers.printing import prints_what_it_can

    with prints_what_it_can(), ends_when_asked("interrupted"):
        from envtuning.worlds.bfcl.command import main

        sys.exit(main())
