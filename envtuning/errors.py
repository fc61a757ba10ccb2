"""What a user of this package can mend. The command line tells each in its own sentence, without a traceback."""

from __future__ import annotations

from engineers.errors import Mendable


class SpecError(Mendable, ValueError):
    """What was asked for cannot be run: an unknown name, a config or an option that does not fit, an engineer that cannot be asked."""


class RunError(Mendable, RuntimeError):
    """A run or its folder cannot go on as it is, or is not what the command needs."""
