"""The console that every command prints to."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.text import Text

from engineers.shared.terminal import TextConsole

LOG_WIDTH = 120  # columns, if the output is not a terminal


def make_console() -> Console:
    """A console for tables and sentences. Only tables break lines, and a log file is wider than 80 columns.

    Texts of engineers, files and errors are untrusted. So square brackets are no markup, and control characters are escaped.
    """
    width = None if sys.stdout.isatty() else LOG_WIDTH
    return TextConsole(soft_wrap=True, markup=False, emoji=False, highlight=False, width=width)


def print_error(kind: str, message: str) -> None:
    """Print one sentence on the error stream, unchanged."""
    TextConsole(stderr=True, soft_wrap=True).print(Text.assemble((f"{kind}:", "red"), f" {message}"))
