"""Private names of Python's ``multiprocessing``."""

from __future__ import annotations

from multiprocessing import connection
from multiprocessing.connection import Listener

from envtuning.trainees import privates

TESTED = "Python 3.11 to 3.13"


def limit_waiting(listener: Listener, seconds: float) -> None:
    """From now on ``accept`` raises ``TimeoutError`` after so many seconds; there is no public way to wait with a limit."""
    listener._listener._socket.settimeout(seconds)  # type: ignore[attr-defined]


def missing() -> list[str]:
    """A sentence for each name that this version lacks."""
    names = {Listener: ("_listener",), connection.SocketListener: ("_socket",)}  # type: ignore[attr-defined]
    return privates.missing("multiprocessing", TESTED, names)
