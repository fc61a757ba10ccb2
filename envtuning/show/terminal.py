"""The console that every command prints to."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.text import Text

from engineers.terminal import TextConsole

LOG_WIDTH = 120  # columns, where the output is no terminal


def make_console() -> Console:
    """For tables and sentences: no line is broken but in tables, and a log file is not taken for 80 columns.

    Square brackets are themselves, not markup, and control characters are written out: engineers, files and error messages
    write what they like.
    """
    width = None if sys.stdout.isatty() else LOG_WIDTH
    return TextConsole(soft_wrap=True, markup=False, emoji=False, highlight=False, width=width)


def print_error(kind: str, message: str) -> None:
    """One sentence on the error stream, word for word."""
    TextConsole(stderr=True, soft_wrap=True).print(Text.assemble((f"{kind}:", "red"), f" {message}"))
