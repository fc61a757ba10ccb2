"""One stage: try it until an attempt ends, then report. Killed anywhere, it starts again from the checkpoint before it.

A stage's result depends on that checkpoint, its config, its allowance and the run's seed alone.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from engineers.knobs import validated
from engineers.report import Incident
from envtuning.errors import RunError
from envtuning.loop import inside
from envtuning.loop.attempt import Attempt
from envtuning.loop.contract import TraineeFailed, save_checkpoint
from envtuning.loop.observer import Observer
from envtuning.loop.report import StageOutcome, build_report
from envtuning.loop.validation import Suites
from envtuning.runs import atomic
from envtuning.runs.log import RunLog
from envtuning.runs.spec import Stage
from envtuning.runs.state import Done, StageState
from envtuning.trainees.base import Trainee, TrainingDiverged, WorkerLost
from envtuning.worlds.episodes import rates
from envtuning.worlds.world import InfeasibleConfig


@dataclass
class StageRunner:
    """Runs the last stage of a run to its end."""

    log: RunLog
    allowance: int  # what this stage may spend: its budget, and what earlier stages saved or overspent
    suites: Suites
    load_trainee: Callable[[bool], Trainee]  # as it was before this stage; True: in new processes
    observer: Observer
    spent: Counter[str] = field(default_factory=Counter)  # by unit, attempts that diverged included
    incidents: list[Incident] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)  # of metrics.jsonl

    @property
    def stage(self) -> StageState:
        return self.log.state.stages[-1]

    @property
    def listed(self) -> Stage:
        """The stage in the run's file."""
        return self.log.plan.spec.stage(self.stage.number)

    def run_to_end(self) -> None:
        """Afterwards the stage is done. Raises ``RunError`` when it failed too often."""
        begin = time.monotonic()
        config, renew, retries = self.stage.chosen.config, False, self.log.plan.spec.retries
        faults: list[str] = []
        interrupted = inside.latest(self.log.files, self.stage.path)
        if interrupted is not None:
            config = validated(type(config), interrupted.state.config)
            self.incidents, self.spent = list(interrupted.state.incidents), Counter(interrupted.state.spent)
            self.lines = interrupted.lines
        for attempt in range(interrupted.state.attempt if interrupted else 0, 1 + retries):
            if interrupted is None:
                atomic.clear(self.stage.path, keep=("config.json",))
                self.lines = []
                for incident in self.incidents:
                    self.note("incident", message=incident.message)
            self.observer.stage_began(self.stage, self.allowance)
            before = self.spent.copy()  # by earlier attempts
            if interrupted is not None:
                before -= Counter(interrupted.state.trained) + Counter(interrupted.state.validated)
            try:
                tried = Attempt(self, config, self.load_trainee(renew), attempt)
                if interrupted is not None:
                    tried.resume_from(interrupted)
                    interrupted = None
                outcome = tried.run_to_end()
            except (TrainingDiverged, InfeasibleConfig, WorkerLost, TraineeFailed) as error:
                config, renew = self._survive(error, config)
                faults.append(self.incidents[-1].message)
                if isinstance(error, WorkerLost | TraineeFailed):
                    self.spent = before  # no fault of the config's: the stage is repeated as if nothing had been
                continue
            self._finish(tried.trainee, outcome, attempt + 1, time.monotonic() - begin)
            return
        raise RunError(
            f"stage {self.stage.number} failed {1 + retries} times ({'; '.join(faults)}). The stages before it stand: "
            f"lower the learning rate or change the config in a new run, or mend the cause and "
            f"`envtuning resume {self.log.path}`"
        )

    def _survive(self, error: Exception, config: Any) -> tuple[Any, bool]:
        """Record what happened; the config to try next, and whether the trainee needs new processes."""
        if isinstance(error, WorkerLost | TraineeFailed):
            kind = "worker_lost" if isinstance(error, WorkerLost) else "trainee_failed"
            self.record(kind, f"{error}; the stage starts again from its checkpoint")
            return config, True
        good = self._last_good_config()
        if isinstance(error, InfeasibleConfig):
            self.record("generation_failed", f"{error}; the last good config is used again")
            if good is None or good == config:
                raise RunError(f"stage {self.stage.number}'s config cannot be drawn: {error}") from error
            return good, False
        self.record("diverged", f"{error}; the last good checkpoint and config go on")
        return good or config, False

    def _last_good_config(self) -> Any | None:
        report = self.log.state.done[-1].report if self.log.state.done else None
        return validated(self.log.plan.world.config_type, report.config) if report else None

    def record(self, kind: Any, message: str) -> None:
        incident = Incident(kind=kind, message=message, stage=self.stage.number)
        self.incidents.append(incident)
        self.observer.went_wrong(incident)

    def note(self, kind: str, **values: object) -> None:
        self.lines.append({"kind": kind, **values})
        atomic.append_line(self.stage.path / "metrics.jsonl", self.lines[-1])

    def _finish(self, trainee: Trainee, outcome: StageOutcome, attempts: int, seconds: float) -> None:
        inside.remove(inside.folders(self.stage.path))
        done = Done(
            reason=outcome.reason,
            spent=dict(self.spent),
            trained=outcome.trained,
            validated=outcome.validated,
            validations=len(outcome.history.validations),
            attempts=attempts,
            seconds=round(seconds, 3),
            metrics=rates(outcome.episodes),
        )
        report = build_report(self.log.plan, self.log.state, outcome)
        try:
            self.log.finished(partial(save_checkpoint, trainee.save), outcome.episodes, report, done)
        except TraineeFailed as error:
            raise RunError(f"stage {self.stage.number} is trained, but {error}; mend it and resume") from error
        self.observer.stage_ended(self.stage)
