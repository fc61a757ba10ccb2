"""How a command ends that is asked to, by Ctrl-C or SIGTERM: soon, with a line, without a traceback."""

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

ENDED = 130  # the exit code, as of a command that Ctrl-C ended
PATIENCE = 3.0  # seconds until a line says that the command is still ending
STILL_ENDING = b"asked to end: what runs just now (Ray, a compilation) cannot be left at once\n"


@contextmanager
def ends_when_asked(last_words: str) -> Iterator[None]:
    """A command inside hears SIGTERM as it hears Ctrl-C; what it does not catch ends the process with ``last_words``.

    In the middle of an import either signal ends it on the spot.

    What is raised inside an import, libraries swallow or turn into errors of theirs; and no file of ours is half-written there
    that a killed process would not leave as well. A process that was told to ignore Ctrl-C keeps ignoring it.
    """
    words = f"{last_words}\n".encode()

    def asked(number: int, frame: FrameType | None) -> None:
        if _importing(frame):
            with suppress(Exception):  # what was printed already; the stream may be in the middle of a write
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
    """Signals reach Python's own handlers only between two of its steps; a socket hears of them at once."""
    hears, told = socket.socketpair()
    told.setblocking(False)
    signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)

    def say(hears: socket.socket, _told: socket.socket) -> None:  # both live as long as somebody listens
        while hears.recv(1)[0] not in numbers:
            pass
        time.sleep(PATIENCE)
        os.write(2, STILL_ENDING)

    threading.Thread(target=say, args=(hears, told), daemon=True).start()
