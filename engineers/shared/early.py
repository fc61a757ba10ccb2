"""The first step of a command. ``ending`` takes over when it is imported."""

from __future__ import annotations

import signal


def end_without_traceback() -> None:
    """From now on Ctrl-C ends this process like SIGTERM, unless somebody else handles or ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
