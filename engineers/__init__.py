"""Engineers read a report of what a trainee did and propose the next environment config."""

from __future__ import annotations

import sys

if (getattr(sys, "argv", None) or [""])[0] == "-m" or sys.argv[0].endswith(("/envtuning", "envtuning.exe")):
    import _signal  # a command begins: until engineers.ending handles signals, Ctrl-C ends it like SIGTERM

    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

TYPE_CHECKING = False  # without typing, because its import takes longer than this whole module
if TYPE_CHECKING:
    from typing import Any

    from engineers.public import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Import at first use, so that a command handles Ctrl-C before slow imports."""
    from importlib.util import find_spec

    if find_spec(f"engineers.{name}"):  # `from engineers import own` asks here before it imports the module
        raise AttributeError(f"module 'engineers.{name}' is not imported yet")
    from engineers import public

    if name == "__all__":
        return [found for found in dir(public) if not found.startswith("_")]
    return getattr(public, name)
