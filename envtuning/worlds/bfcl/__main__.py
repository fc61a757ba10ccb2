"""``python -m envtuning.worlds.bfcl install | verify | templates``: see ``command``."""

from __future__ import annotations

import sys

from engineers.ending import ends_when_asked
from engineers.printing import prints_what_it_can

if __name__ == "__main__":
    with prints_what_it_can(), ends_when_asked("interrupted"):
        from envtuning.worlds.bfcl.command import main

        sys.exit(main())
