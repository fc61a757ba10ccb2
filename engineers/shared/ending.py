"""Ends a command on Ctrl-C or SIGTERM: soon, with a line of text, without a traceback."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

ENDED = 130  # the usual exit code after Ctrl-C
PATIENCE = 3.0  # seconds until a line says that the command is still ending
STILL_ENDING = b"asked to end: what runs just now (Ray, a compilation) cannot be left at once\n"


@contextmanager
def ends_when_asked(last_words: str) -> Iterator[None]:
    """Inside, SIGTERM acts like Ctrl-C; if the command does not catch it, the process prints ``last_words`` and ends.

    In the middle of an import either signal ends it on the spot.

    Libraries swallow or translate errors that are raised during an import, and our files are written so that a kill does no
    harm. A process that ignores Ctrl-C from its start keeps ignoring it.
    """
    words = f"{last_words}\n".encode()

    def asked(number: int, frame: FrameType | None) -> None:
        if _importing(frame):
            with suppress(Exception):  # flush earlier output; the stream may be in the middle of a write
                sys.stdout.flush()
            os.write(2, words)
            os._exit(ENDED)
        raise KeyboardInterrupt

    numbers = [signal.SIGTERM]
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        numbers.append(signal.SIGINT)
    try:
        for number in numbers:
            signal.signal(number, asked)
        _say_when_it_takes_long(numbers)
        yield
    except KeyboardInterrupt:
        print(last_words, file=sys.stderr, flush=True)
        sys.exit(ENDED)


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _say_when_it_takes_long(numbers: list[signal.Signals]) -> None:
    """Python runs signal handlers only between two of its steps; a socket is notified at once."""
    hears, told = socket.socketpair()
    told.setblocking(False)
    signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)

    def say(hears: socket.socket, _told: socket.socket) -> None:  # both live as long as the listener
        while hears.recv(1)[0] not in numbers:
            pass
        time.sleep(PATIENCE)
        os.write(2, STILL_ENDING)

    threading.Thread(target=say, args=(hears, told), daemon=True).start()
