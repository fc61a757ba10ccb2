"""Waits for foreign code, with a time limit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class NotEnded(Exception):
    """The call did not return in time."""


def run_with_timeout(seconds: float, name: str, call: Callable[[], T]) -> T:
    """The call's result or error, or ``NotEnded``. The call runs in a thread of this name, which ends with the process."""
    given: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            given.append(call())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise NotEnded(f"no answer within {seconds:g} s")
    if raised:
        raise raised[0]
    return given[0]
