"""Waits for somebody else's code, and not for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class NotEnded(Exception):
    """The call has not come back in time."""


def within(seconds: float, name: str, call: Callable[[], T]) -> T:
    """What the call gives or raises, or ``NotEnded``; the thread that it runs in has this name, and dies with the process."""
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
