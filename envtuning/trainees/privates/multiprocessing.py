"""Private names of Python's ``multiprocessing``."""

from __future__ import annotations

from multiprocessing import connection
from multiprocessing.connection import Listener

TESTED = "Python 3.11 to 3.13"
NAMES = {Listener: ("_listener",), connection.SocketListener: ("_socket",)}  # type: ignore[attr-defined]


def limit_waiting(listener: Listener, seconds: float) -> None:
    """From now on ``accept`` raises ``TimeoutError`` after so many seconds; there is no public way to wait with a limit."""
    listener._listener._socket.settimeout(seconds)  # type: ignore[attr-defined]
