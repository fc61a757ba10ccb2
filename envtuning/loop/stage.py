"""One stage: try it until an attempt ends, then report. Killed anywhere, it starts again from the checkpoint before it.

A stage's result depends on that checkpoint, its config, its allowance and the run's seed alone.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from engineers.knobs import validated
from engineers.report import Incident
from envtuning.loop import inside
from envtuning.loop.attempt import Attempt
from envtuning.loop.contract import TraineeFailed, save_checkpoint
from envtuning.loop.observer import Observer
from envtuning.loop.report import StageOutcome, build_report
from envtuning.loop.validation import Suites
from envtuning.runs import atomic, checked
from envtuning.runs.folder import Done, RunFolder, StageConfig, StageFolder
from envtuning.runs.spec import Stage
from envtuning.trainees.base import Trainee, TrainingDiverged, WorkerLost
from envtuning.worlds.episodes import rates
from envtuning.worlds.world import InfeasibleConfig


class RunStopped(RuntimeError):
    """The run cannot go on by itself; the message says what to do. ``resume`` continues from where it stopped."""


@dataclass
class StageRunner:
    """Runs one stage of a run to its end."""

    run: RunFolder
    folder: StageFolder
    plan: Stage
    chosen: StageConfig[Any]
    allowance: int  # what this stage may spend: its budget, and what earlier stages saved or overspent
    suites: Suites
    load_trainee: Callable[[bool], Trainee]  # as it was before this stage; True: in new processes
    observer: Observer
    spent: Counter[str] = field(default_factory=Counter)  # by unit, attempts that diverged included
    incidents: list[Incident] = field(default_factory=list)

    def run_to_end(self) -> None:
        """Afterwards the stage is done. Raises ``RunStopped`` when it failed too often."""
        begin = time.monotonic()
        config, renew = self.chosen.config, False
        faults: list[str] = []
        interrupted = inside.latest(self.folder.path)
        if interrupted is not None:
            config = validated(type(config), interrupted.state.config)
            self.incidents, self.spent = list(interrupted.state.incidents), Counter(interrupted.state.spent)
        for attempt in range(interrupted.state.attempt if interrupted else 0, 1 + self.run.spec.retries):
            if interrupted is None:
                atomic.clear(self.folder.path, keep=(self.folder.config_file.name,))
                for incident in self.incidents:
                    self.note("incident", message=incident.message)
            self.observer.stage_began(self.folder, self.allowance)
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
        raise RunStopped(
            f"stage {self.folder.number} failed {1 + self.run.spec.retries} times ({'; '.join(faults)}). The stages before it stand: "
            f"lower the learning rate or change the config in a new run, or mend the cause and "
            f"`envtuning resume {self.run.path}`"
        )

    def _survive(self, error: Exception, config: Any) -> tuple[Any, bool]:
        """Record what happened; the config to try next, and whether the trainee needs new processes."""
        if isinstance(error, WorkerLost):
            self.record("worker_lost", f"{error}; the stage starts again from its checkpoint")
            return config, True
        if isinstance(error, TraineeFailed):
            self.record("trainee_failed", f"{error}; the stage starts again from its checkpoint")
            return config, True
        good = self._last_good_config()
        if isinstance(error, InfeasibleConfig):
            self.record("generation_failed", f"{error}; the last good config is used again")
            if good is None or good == config:
                raise RunStopped(f"stage {self.folder.number}'s config cannot be drawn: {error}") from error
            return good, False
        self.record("diverged", f"{error}; the last good checkpoint and config go on")
        return good or config, False

    def _last_good_config(self) -> Any | None:
        if self.folder.number == 0:
            return None
        report = self.run.stage(self.folder.number - 1).report
        assert report is not None, "a stage that is done has a report"
        return validated(self.run.world.config_type, report.config)

    def record(self, kind: Any, message: str) -> None:
        incident = Incident(kind=kind, message=message, stage=self.folder.number)
        self.incidents.append(incident)
        self.observer.went_wrong(incident)

    def note(self, kind: str, **values: object) -> None:
        atomic.append_line(self.folder.metrics_file, {"kind": kind, **values})

    def _finish(self, trainee: Trainee, outcome: StageOutcome, attempts: int, seconds: float) -> None:
        inside.remove(inside.folders(self.folder.path))
        try:
            with checked.new_folder(self.folder.checkpoint) as draft:
                save_checkpoint(trainee.save, draft)
        except TraineeFailed as error:
            raise RunStopped(f"stage {self.folder.number} is trained, but {error}; mend it and resume") from error
        checked.note(self.folder.metrics_file)
        checked.write_json(self.folder.episodes_file, [episode.to_json() for episode in outcome.episodes])
        report = build_report(self.run, self.suites.validation, outcome)
        checked.write_record(self.folder.report_file, report)
        done = Done(
            reason=outcome.reason,
            spent=dict(self.spent),
            trained=outcome.trained,
            validated=outcome.validated,
            attempts=attempts,
            seconds=round(seconds, 3),
            metrics=rates(outcome.episodes),
        )
        checked.write_record(self.folder.done_file, done)
        self.observer.stage_ended(self.folder)
