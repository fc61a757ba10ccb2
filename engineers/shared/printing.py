"""Prints a command's output: every character can be printed, and an output that cannot be written gives a sentence."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def printing_any_character() -> Iterator[None]:
    """Characters that the output's encoding lacks are written out (``\\u00d7``), as Python does for errors; a full disk behind the output is an error."""
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 -- closed by whoever started the command
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a notebook's and a test's are their own
            stream.reconfigure(errors="backslashreplace")
    told = False
    try:
        yield
    except SystemExit as ended:
        told = ended.code not in (None, 0)
        raise
    except OSError as error:  # for errors without their own sentence, such as while printing the help
        if error.filename is not None:
            raise
        told = True
        _tell(error)
    finally:
        if (left := _unwritten()) and not told:
            _tell(left)


def _tell(error: OSError) -> None:
    _unwritten()
    print(f"error: the output could not be written ({error.strerror}): give it another place", file=sys.stderr)
    sys.exit(1)


def _unwritten() -> OSError | None:
    """Why the output's rest cannot be written; it is given up, or Python would try again at its end and print a traceback."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return None if isinstance(error, BrokenPipeError) else error  # the reader has closed the pipe
    return None
