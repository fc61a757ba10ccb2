"""One stage: attempts until one ends, then the report. After a kill it starts again from the previous checkpoint.

A stage's result depends only on that checkpoint, its config, its allowance and the run's seed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from engineers.knobs import dump
from engineers.report import Incident
from envtuning import atomic
from envtuning.errors import RunError
from envtuning.loop import inside
from envtuning.loop.attempt import Attempt
from envtuning.loop.contract import TraineeFailed, as_trainee_failed, save_checkpoint
from envtuning.loop.observer import Observer
from envtuning.loop.report import StageOutcome, build_report
from envtuning.loop.validation import Suites
from envtuning.runs.log import RunLog
from envtuning.runs.spec import Stage
from envtuning.runs.state import Done, StageState
from envtuning.trainees.base import Trainee, TrainingDiverged, WorkerLost
from envtuning.worlds.episodes import rates
from envtuning.worlds.world import InfeasibleConfig

SURVIVED = (TrainingDiverged, InfeasibleConfig, WorkerLost, TraineeFailed)


@dataclass
class StageRunner:
    """Runs the last stage of a run to its end."""

    log: RunLog
    allowance: int  # its budget, plus or minus what earlier stages saved or overspent
    suites: Suites
    load_trainee: Callable[[bool], Trainee]  # as it was before this stage; True: in new processes
    observer: Observer
    so_far: inside.StageSoFar = field(init=False)

    @property
    def stage(self) -> StageState:
        return self.log.state.stages[-1]

    @property
    def listed(self) -> Stage:
        """The stage in the run's file."""
        return self.log.plan.spec.stage(self.stage.number)

    def run_to_end(self) -> None:
        """Run attempts until the stage is done. Raises ``RunError`` if it failed too often."""
        begin, renew, faults = time.monotonic(), False, list[str]()
        retries = self.log.plan.spec.retries
        left = inside.latest(self.log.files, self.stage.path)  # by a process that was killed
        self.so_far = left.so_far if left else inside.StageSoFar(config=dump(self.stage.chosen.config))
        while self.so_far.attempt <= retries:
            if left is None:
                atomic.clear(self.stage.path, keep=("config.json",))
                for incident in self.so_far.incidents:
                    self.note("incident", message=incident.message)
            self.observer.stage_began(self.stage, self.allowance)
            try:
                trainee = self.load_trainee(renew)
                if left is not None:
                    with as_trainee_failed(f"load of {left.trainee}"):
                        trainee.load(left.trainee)
                outcome = Attempt(self, trainee).run_to_end()
            except SURVIVED as error:
                left, renew = None, self._survive(error)
                faults.append(self.so_far.incidents[-1].message)
            else:
                self._finish(trainee, outcome, time.monotonic() - begin)
                return
        raise RunError(
            f"stage {self.stage.number} failed {1 + retries} times ({'; '.join(faults)}). The earlier stages are kept: "
            f"lower the learning rate or change the config in a new run, or remove the cause and "
            f"`envtuning resume {self.log.path}`"
        )

    def _survive(self, error: Exception) -> bool:
        """Record the incident and prepare the next attempt; returns whether it needs a trainee in new processes."""
        config = self.so_far.config
        if isinstance(error, WorkerLost | TraineeFailed):  # the config is not at fault: repeat the attempt
            kind = "worker_lost" if isinstance(error, WorkerLost) else "trainee_failed"
            self.record(kind, f"{error}; the stage starts again from its checkpoint")
            self.so_far = self.so_far.again(config, charged=False)
            return True
        good = self.log.state.done[-1].record.config if self.log.state.done else None
        if isinstance(error, InfeasibleConfig):
            self.record("generation_failed", f"{error}; the last good config is used again")
            if good is None or good == config:
                raise RunError(f"stage {self.stage.number}'s config cannot be drawn: {error}") from error
        else:
            self.record("diverged", f"{error}; the last good checkpoint and config go on")
        self.so_far = self.so_far.again(good or config, charged=True)
        return False

    def record(self, kind: Any, message: str) -> None:
        incident = Incident(kind=kind, message=message, stage=self.stage.number)
        self.so_far.incidents.append(incident)
        self.observer.went_wrong(incident)

    def note(self, kind: str, **values: object) -> None:
        line = {"kind": kind, **values}
        self.so_far.lines.append(line)
        atomic.append_line(self.stage.path / "metrics.jsonl", line)

    def _finish(self, trainee: Trainee, outcome: StageOutcome, seconds: float) -> None:
        inside.remove(inside.folders(self.stage.path))
        done = Done(
            reason=outcome.reason,
            spent=dict(self.so_far.spent),
            trained=dict(self.so_far.trained),
            validated=dict(self.so_far.validated),
            validations=len(self.so_far.validations),
            attempts=self.so_far.attempt + 1,
            seconds=round(seconds, 3),
            metrics=rates(outcome.episodes),
        )
        report = build_report(self.log.plan, self.log.state, outcome)
        try:
            self.log.finished(partial(save_checkpoint, trainee.save), outcome.episodes, report, done)
        except TraineeFailed as error:
            raise RunError(f"stage {self.stage.number} is trained, but {error}; fix this and resume") from error
        self.observer.stage_ended(self.stage)
