"""Writes a run's metrics as TensorBoard event files, from its folder: during the run, or afterwards."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from engineers.shared.extras import needs
from envtuning import atomic
from envtuning.outcomes import Tally
from envtuning.runs.log import RunLog
from envtuning.trainees.base import OUTCOMES

NOT_METRICS = ("kind", "spent")
TAGS = {"iteration": "training", "validation": "validation"}  # by the line's kind


class EventFiles:
    """Writes ``RUN/tensorboard`` anew. The x axis is the run's cost so far."""

    def __init__(self, run: RunLog) -> None:
        try:
            from tensorboardX import SummaryWriter  # the library behind Ray's own TensorBoard logger
        except ImportError as error:
            raise needs("envtuning tensorboard", error) from error
        self.run, self.folder = run, run.path / "tensorboard"
        self._open = SummaryWriter
        self._written: dict[int, list[dict[str, Any]]] = {}  # by stage
        with atomic.storage_errors(self.folder):
            if self.folder.exists():
                shutil.rmtree(self.folder)
            self._writer = SummaryWriter(str(self.folder))
        self._restarts = 0

    def catch_up(self) -> Path:
        """Write what is new since the last time; a stage that started again is written again."""
        self.run.refresh()
        with atomic.storage_errors(self.folder):
            before = 0
            for stage in self.run.state.stages:
                lines, known = stage.metrics(), self._written.get(stage.number, [])
                if lines[: len(known)] != known:
                    known = []
                    self._writer.close()
                    self._restarts += 1  # in the name, because a file of the same second would be overwritten
                    self._writer = self._open(str(self.folder), purge_step=before, filename_suffix=f".{self._restarts}")
                for line in lines[len(known) :]:
                    self._write(line, stage.number, before)
                self._written[stage.number] = lines
                before += stage.spent(self.run.plan.unit)
            self._writer.flush()
        return self.folder

    def close(self) -> None:
        self._writer.close()

    def _write(self, line: dict[str, Any], stage: int, before: int) -> None:
        if line["kind"] not in TAGS:
            return
        step = before + int(line["spent"])
        for name, value in line.items():
            if name == OUTCOMES:
                for tag, rate in Tally.model_validate(value).as_logged().items():
                    self._writer.add_scalar(tag, rate, step)
            elif name not in NOT_METRICS:
                self._writer.add_scalar(f"{TAGS[line['kind']]}/{name}", value, step)
        self._writer.add_scalar("stage", stage, step)
