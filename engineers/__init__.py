"""Engineers read a report of what a trainee did and propose the next environment config."""

from __future__ import annotations

import sys

if (getattr(sys, "argv", None) or [""])[0] == "-m" or sys.argv[0].endswith(("/envtuning", "envtuning.exe")):
    import _signal  # a command is about to begin: until it can answer (engineers.ending), Ctrl-C ends it as SIGTERM does

    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

TYPE_CHECKING = False  # without typing, which takes longer to import than all of this
if TYPE_CHECKING:
    from typing import Any

    from engineers.public import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Imported when asked for, so that a command hears Ctrl-C before anything that takes long is imported."""
    from importlib.util import find_spec

    if find_spec(f"engineers.{name}"):  # `from engineers import own` asks here before it imports the module
        raise AttributeError(f"module 'engineers.{name}' is not imported yet")
    from engineers import public

    if name == "__all__":
        return [found for found in dir(public) if not found.startswith("_")]
    return getattr(public, name)
