"""A sign of life: a line that says what goes on, whenever a command has printed nothing for some seconds."""

from __future__ import annotations

import threading
import time

from rich.console import Console, ConsoleRenderable, RenderHook

from engineers.shared.counts import in_words
from envtuning.loop.observer import Observer, Progress
from envtuning.runs.log import RunLog
from envtuning.runs.state import Choice, Stage

QUIET = 4.0  # seconds; nobody should wait five for the next line


class Pulse(Observer, RenderHook):
    """Prints ``  … stage 1, 4,000 of 5,000 env steps (8 s)`` when nothing else was printed; other lines and moving bars count as printed.

    As an observer it knows what a run does; ``now`` says what else goes on.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self._what, self._since = "", 0.0
        self._printed = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="pulse", daemon=True)

    def __enter__(self) -> Pulse:
        self.console.push_render_hook(self)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()
        self.console.pop_render_hook()

    def now(self, what: str) -> None:
        """What goes on from now on; nothing is printed of an empty text."""
        self._what, self._since = what, time.monotonic()

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Rich calls this for all that is printed."""
        self._printed = time.monotonic()
        return renderables

    def _beat(self) -> None:
        while not self._over.wait(QUIET / 8):
            now = time.monotonic()
            if self._what and now - self._printed >= QUIET:
                self.console.print(f"  … {self._what} ({now - self._since:.0f} s)")

    def run_began(self, run: RunLog) -> None:
        self.now("the run begins")

    def stage_began(self, stage: Stage, allowance: int) -> None:
        self.now(f"stage {stage.number} begins")

    def progressed(self, progress: Progress) -> None:
        unit = in_words(progress.unit)
        # The time is still that since the stage began.
        self._what = f"stage {progress.stage}, {progress.spent:,} of {progress.allowance:,} {unit}"

    def validated(self, stage: Stage, metrics: dict[str, float]) -> None:
        self.now(f"stage {stage.number} is validated")

    def stage_ended(self, stage: Stage) -> None:
        self.now(f"stage {stage.number} has ended")

    def engineer_asked(self, stage: Stage, name: str) -> None:
        self.now(f"{name} is asked")

    def engineer_answered(self, stage: Stage, choice: Choice) -> None:
        self.now("the engineer has answered")

    def test_opened(self, cases: int) -> None:
        self.now("the test suite is played")

    def run_left(self) -> None:
        self.now("the run is over")
