"""How far a command is that only counts: on a terminal one line that changes, elsewhere a line for each tenth."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console

from envtuning.studies.pace import Pace


class Working:
    """Says what is being done while it is done; ``tell`` adds how far it is and about how long the rest takes."""

    def __init__(self, console: Console, what: str) -> None:
        self.console, self.what = console, what
        self.status = console.status(what) if console.is_terminal else None
        self._told_before: tuple[int, float] | None = None  # what was done already, and when this was first told
        self._tenth = 0

    def __enter__(self) -> Working:
        if self.status is None:
            self.console.print(self.what)
        else:
            self.status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.status is not None:
            self.status.stop()

    def tell(self, what: str, done: int, of: int, more: str = "") -> None:
        """``taught 1,024 of 24,576, loss 0.512, about 6 min left``; the rest by the pace since the first time."""
        if self._told_before is None:
            self._told_before = done, time.monotonic()
        first, begun = self._told_before
        line = f"{what} {done:,} of {of:,}{more}{Pace(of - first, done - first, begun).left()}"
        if self.status is not None:
            self.status.update(line)
        elif 10 * done // max(1, of) > self._tenth:
            self._tenth = 10 * done // max(1, of)
            self.console.print(f"  {line}")
