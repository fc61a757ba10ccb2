"""The progress of a long command: on a terminal one changing line, elsewhere a line for each tenth of the work."""

from __future__ import annotations

import time

from rich.console import Console

from envtuning.show.pace import Pace


class Working:
    """Shows the current work; ``tell`` adds the progress and an estimate of the remaining time."""

    def __init__(self, console: Console, what: str) -> None:
        self.console, self.what = console, what
        self.status = console.status(what) if console.is_terminal else None
        self._told_before: tuple[int, float] | None = None  # the amount done at the first call, and its time
        self._tenth = 0

    def __enter__(self) -> Working:
        if self.status is None:
            self.console.print(self.what)
        else:
            self.status.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.status is not None:
            self.status.stop()

    def tell(self, what: str, done: int, of: int, more: str = "") -> None:
        """Print ``taught 1,024 of 24,576, loss 0.512, about 6 min left``; the estimate is by the pace since the first call."""
        if self._told_before is None:
            self._told_before = done, time.monotonic()
        first, begun = self._told_before
        line = f"{what} {done:,} of {of:,}{more}{Pace(of - first, done - first, begun).left()}"
        if self.status is not None:
            self.status.update(line)
        elif 10 * done // max(1, of) > self._tenth:
            self._tenth = 10 * done // max(1, of)
            self.console.print(f"  {line}")
