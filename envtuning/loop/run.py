"""The loop: choose a config, train, validate, report, ask the engineer. At the end, open the test suite once.

``continue_run`` repeats: find the next task from the log's state, and do it. All of this state is on the disk, so a first start and a
resumption after a kill run the same code.
"""

from __future__ import annotations

from functools import cached_property, partial
from pathlib import Path
from typing import Any

from engineers.report import Incident
from envtuning import atomic
from envtuning.errors import RunError
from envtuning.loop import contract
from envtuning.loop.ask import ask, redraw
from envtuning.loop.contract import TraineeFailed, as_trainee_failed, load_checkpoint, save_checkpoint
from envtuning.loop.observer import Observer, Observers
from envtuning.loop.stage import StageRunner
from envtuning.loop.validation import Suites, open_suites
from envtuning.runs.log import RunLog
from envtuning.runs.resolve import raise_unless_askable, resolve
from envtuning.runs.spec import RunSpec
from envtuning.runs.state import StageConfig, TestRecord
from envtuning.runs.tasks import Choose, Test, Train, next_task
from envtuning.seeds import derive
from envtuning.trainees.base import Trainee, WorkerLost
from envtuning.worlds.episodes import slice_results


def create(folder: str | Path, spec: RunSpec) -> RunLog:
    """Make the run's folder, but only if the run can begin. A folder that already holds this run is opened instead."""
    return RunLog.create(folder, resolve(spec))


def start(spec: RunSpec, folder: str | Path, observer: Observer | None = None) -> RunLog:
    """Run a spec to its end in a new folder. If the folder already holds this run, continue it."""
    run = create(folder, spec)
    continue_run(run, observer)
    return run


def resume(folder: str | Path, observer: Observer | None = None) -> RunLog:
    """Continue an interrupted run. The result is the same as without the interruption."""
    run = RunLog.open(folder)
    continue_run(run, observer)
    return run


def continue_run(run: RunLog, observer: Observer | None = None, *, stages: int | None = None) -> None:
    """Do the remaining work, at most up to the given number of stages."""
    with atomic.locked(run.path):
        run.refresh()
        run.verify()
        raise_unless_askable(run.plan)
        observer = Observers([observer] if observer is not None else [])
        observer.run_began(run)
        loop = Loop(run, observer)
        try:
            while (task := next_task(run.plan, run.state)) is not None:
                if stages is not None and (isinstance(task, Test) or task.stage >= stages):
                    return
                loop.do(task)
        finally:
            try:
                loop.close()
            finally:
                observer.run_left()


class Loop:
    """Processes and arrays that a run needs while it runs. None of them is part of the run's state."""

    def __init__(self, log: RunLog, observer: Observer) -> None:
        self.log, self.plan, self.spec, self.observer = log, log.plan, log.plan.spec, observer
        self.trainee: Trainee | None = None

    @cached_property
    def suites(self) -> Suites:
        return open_suites(self.log)

    def do(self, task: Choose | Train | Test) -> None:
        if isinstance(task, Choose):
            self.choose(task.stage)
        elif isinstance(task, Train):
            self.train(task.stage)
        else:
            self.test()

    def close(self) -> None:
        """Release the trainee's processes. A failure here does not matter, because the work is done."""
        trainee, self.trainee = self.trainee, None
        if trainee is None:
            return
        try:
            contract.close(trainee)
        except TraineeFailed as error:
            self.record("trainee_failed", str(error))

    def record(self, kind: Any, message: str) -> None:
        """Record an incident outside of a stage."""
        incident = Incident(kind=kind, message=message, stage=max(0, len(self.log.state.done) - 1))
        self.log.survived(incident)
        self.observer.went_wrong(incident)

    def choose(self, number: int) -> None:
        """Decide the stage's config."""
        listed, config = self.spec.stage(number), self.plan.config(number)
        chosen_by = StageConfig[self.plan.world.config_type]  # type: ignore[name-defined]
        if config is not None:
            config = redraw(self.plan, config) if listed.redraw else config
            chosen = chosen_by(name=listed.name, config=config, engineer="default" if number == 0 else "file")
        else:
            before = self.log.state.stages[-1]
            self.observer.engineer_asked(before, self.spec.engineer.name)
            answer = ask(self.log, lambda: self.trainee_before(number))
            self.observer.engineer_answered(before, answer)
            for incident in answer.incidents:
                self.observer.went_wrong(incident)
            by = answer.proposal.engineer if answer.proposal else ""  # a replay has the recorded engineer's name
            chosen = chosen_by(name=listed.name, config=answer.config, engineer=by or self.spec.engineer.name)
        self.log.chose(chosen)

    def train(self, number: int) -> None:
        self.slim(number - 1)
        StageRunner(
            log=self.log,
            allowance=self.spec.allowed(number) - self.log.state.spent.get(self.plan.unit, 0),
            suites=self.suites,
            load_trainee=lambda renew: self.trainee_before(number, renew),
            observer=self.observer,
        ).run_to_end()

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

    def test(self) -> None:
        """Open the test suite, once, and play it with the trainees of the first and the last stage."""
        suite, stages = self.suites.test, len(self.log.state.done)
        assert suite is not None, "a run without a test suite has no test to open"
        self.observer.test_opened(len(suite))
        self.slim(stages - 1)
        tables = {}
        for name, number in (("first", 1), ("last", stages)):
            try:
                trainee = self.trainee_before(number)
                with as_trainee_failed("policy"):
                    seed = derive(self.spec.suites.seed, "play the test")
                    episodes = self.plan.world.play(trainee.policy(), suite, self.plan.target, seed=seed)
            except (TraineeFailed, WorkerLost) as error:
                raise RunError(f"the test of {self.log.path} could not be played: {error}") from error
            tables[name] = slice_results(episodes)
        self.log.tested(TestRecord(**tables))
