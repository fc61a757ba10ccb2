"""Common parts of the benchmarks' commands: arguments, storing figures, and errors that the caller can correct."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks._record import _started, raise_unless_committed, record
from engineers.shared.errors import UserError


def command(doc: str) -> argparse.ArgumentParser:
    """A parser with ``--record``; its help begins with the first paragraph of the module's docstring."""
    parser = argparse.ArgumentParser(prog=" ".join(_started()), description=doc.split("\n\n")[0])
    parser.add_argument("--record", action="store_true", help="store the figures in benchmarks/results")
    return parser


def arguments_of(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """What the caller gave. What could not be recorded afterwards is refused before it is measured."""
    arguments = parser.parse_args()
    if arguments.record:
        raise_unless_committed()
    return arguments


def record_if_asked(arguments: argparse.Namespace, name: str, figures: dict[str, Any]) -> None:
    if arguments.record:
        print(f"written to {record(name, figures)}")


@contextmanager
def errors_in_one_sentence() -> Iterator[None]:
    """With the error's sentence alone, without a traceback, as ``envtuning`` ends."""
    try:
        yield
    except (UserError, ImportError) as error:
        raise SystemExit(str(error)) from error
