"""The loop: choose a config, train, validate, report, ask the engineer. At the end, open the test suite once.

``continue_run`` repeats: find the next task from the log's state, and do it. All of this state is on the disk, so a first start and a
resumption after a kill run the same code.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from envtuning import atomic
from envtuning.errors import RunError
from envtuning.loop.ask import ask, redraw
from envtuning.loop.contract import TraineeFailed, as_trainee_failed
from envtuning.loop.observer import Observer, Observers
from envtuning.loop.session import Session
from envtuning.loop.stage import train_stage
from envtuning.runs.log import RunLog
from envtuning.runs.resolve import raise_unless_askable, resolve
from envtuning.runs.spec import RunSpec
from envtuning.runs.state import Choice, TestRecord
from envtuning.runs.tasks import Choose, Test, Train, next_task
from envtuning.seeds import derive
from envtuning.trainees.base import WorkerLost
from envtuning.worlds.episodes import slice_results


def create(folder: str | Path, spec: RunSpec) -> RunLog:
    """Make the run's folder, but only if the run can begin. A folder that already holds this run is opened instead."""
    return RunLog.create(folder, resolve(spec))


def start(spec: RunSpec, folder: str | Path, observer: Observer | None = None) -> RunLog:
    """Run a spec to its end in a new folder. If the folder already holds this run, continue it."""
    run = create(folder, spec)
    continue_run(run, observer)
    return run


def resume(folder: str | Path, observer: Observer | None = None, *, trust: Iterable[str] = ()) -> RunLog:
    """Continue an interrupted run. The result is the same as without the interruption. ``trust``: as in ``RunLog.open``."""
    run = RunLog.open(folder, trust=trust)
    continue_run(run, observer)
    return run


def continue_run(run: RunLog, observer: Observer | None = None, *, stages: int | None = None) -> None:
    """Do the remaining work, at most up to the given number of stages."""
    with atomic.locked(run.path):
        run.refresh()
        run.verify()
        run.upgrade()
        raise_unless_askable(run.plan)
        observer = Observers([observer] if observer is not None else [])
        observer.run_began(run)
        session = Session(run, observer)
        try:
            while (task := next_task(run.plan, run.state)) is not None:
                if stages is not None and (isinstance(task, Test) or task.stage >= stages):
                    return
                if isinstance(task, Choose):
                    choose(session, task.stage)
                elif isinstance(task, Train):
                    train_stage(session)
                else:
                    open_test(session)
        finally:
            try:
                session.close()
            finally:
                observer.run_left()


def choose(session: Session, number: int) -> None:
    """Decide the stage's config, and record who wrote it."""
    log, plan, listed = session.log, session.plan, session.spec.stage(number)
    config = plan.config(number)
    if config is not None:
        config = redraw(plan, config) if listed.redraw else config
        log.chose(Choice(config=config, engineer="default" if number == 0 else "file"))
        return
    before = session.stage
    session.observer.engineer_asked(before, session.spec.engineer.name)
    choice = ask(log, lambda: session.trainee_before(number))
    session.observer.engineer_answered(before, choice)
    for incident in choice.incidents:
        session.observer.went_wrong(incident)


def open_test(session: Session) -> None:
    """Open the test suite, once, and play it with the trainees of the first and the last stage, and as the run began if asked for."""
    suite, stages = session.suites.test, len(session.log.state.done)
    assert suite is not None, "a run without a test suite has no test to open"
    session.observer.test_opened(len(suite))
    session.slim(stages - 1)
    plan, tables = session.plan, {}
    played = {"start": 0} if session.spec.suites.test_start else {}
    for name, number in (played | {"first": 1, "last": stages}).items():
        try:
            trainee = session.trainee_before(number)
            with as_trainee_failed("policy"):
                seed = derive(session.spec.suites.seed, "play the test")
                episodes = plan.world.play(trainee.policy(), suite, plan.target, seed=seed)
        except (TraineeFailed, WorkerLost) as error:
            raise RunError(f"the test of {session.log.path} could not be played: {error}") from error
        tables[name] = slice_results(episodes)
    session.log.tested(TestRecord(**tables))
