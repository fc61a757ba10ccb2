"""``Session``: what a process holds while it works on a run. None of it is part of the run's state."""

from __future__ import annotations

from functools import cached_property, partial

from engineers.report import Incident, IncidentKind
from envtuning.errors import RunError
from envtuning.loop import contract
from envtuning.loop.contract import TraineeFailed, as_trainee_failed, load_checkpoint, save_checkpoint
from envtuning.loop.observer import Observer
from envtuning.loop.validation import Suites, open_suites
from envtuning.runs.log import RunLog
from envtuning.runs.state import Stage
from envtuning.trainees.base import Trainee


class Session:
    """The run's log and observer, its held-out cases, and the trainee with its processes."""

    def __init__(self, log: RunLog, observer: Observer) -> None:
        self.log, self.plan, self.spec, self.observer = log, log.plan, log.plan.spec, observer
        self.trainee: Trainee | None = None

    @cached_property
    def suites(self) -> Suites:
        return open_suites(self.log)

    @property
    def stage(self) -> Stage:
        """The last stage of the run."""
        return self.log.state.stages[-1]

    @property
    def allowance(self) -> int:
        """The last stage's budget, plus or minus what earlier stages saved or overspent."""
        return self.spec.allowed(self.stage.number) - self.log.state.spent.get(self.plan.unit, 0)

    def close(self) -> None:
        """Release the trainee's processes. A failure here does not matter, because the work is done."""
        trainee, self.trainee = self.trainee, None
        if trainee is None:
            return
        try:
            contract.close(trainee)
        except TraineeFailed as error:
            self.record("trainee_failed", str(error))

    def record(self, kind: IncidentKind, message: str) -> None:
        """Record an incident outside of a stage."""
        incident = Incident(kind=kind, message=message, stage=max(0, len(self.log.state.done) - 1))
        self.log.survived(incident)
        self.observer.went_wrong(incident)

    def slim(self, kept: int) -> None:
        """Let the trainee remove from older checkpoints the parts that only further training needs, such as gigabytes of moments."""
        if self.trainee is None or not self.trainee.slims():
            return
        for earlier in self.log.state.done[: max(0, kept)]:
            if earlier.checkpoint.is_dir():
                try:
                    with self.log.files.changing(earlier.checkpoint), as_trainee_failed("slim"):
                        self.trainee.slim(earlier.checkpoint)
                except TraineeFailed as error:  # the checkpoint only takes more room
                    self.record("trainee_failed", str(error))
                    return

    def trainee_before(self, number: int, renew: bool = False) -> Trainee:
        """The trainee after the previous stage, always loaded from the disk, so that a resumed stage begins in the same way."""
        if renew:
            self.close()
        if self.trainee is None:
            self.trainee = self.plan.make_trainee(self.suites.held_out)
        try:
            start = self.log.start(partial(save_checkpoint, self.trainee.save))
            checkpoint = start if number == 0 else self.log.state.stages[number - 1].checkpoint
            if not checkpoint.is_dir():
                raise RunError(f"{checkpoint} is missing, but stage {number} starts from it: restore it from a copy")
            load_checkpoint(self.trainee, self.log.files, checkpoint)
        except TraineeFailed as error:
            raise RunError(f"trainee {self.spec.trainee.kind!r} cannot begin stage {number}: {error}") from error
        return self.trainee
