"""One stage: attempts until one ends, then the report. After a kill it starts again from the previous checkpoint.

A stage's result depends only on that checkpoint, its config, its allowance and the run's seed.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from engineers.report import IncidentKind
from envtuning import atomic
from envtuning.errors import RunError
from envtuning.loop import inside
from envtuning.loop.attempt import Attempt
from envtuning.loop.contract import TraineeFailed, as_trainee_failed, save_checkpoint
from envtuning.loop.report import build_report
from envtuning.loop.session import Session
from envtuning.runs.state import StageResult
from envtuning.trainees.base import TrainingDiverged, WorkerLost
from envtuning.worlds.episodes import rates
from envtuning.worlds.world import InfeasibleConfig

SURVIVED = (TrainingDiverged, InfeasibleConfig, WorkerLost, TraineeFailed)


def train_stage(session: Session) -> None:
    """Train the run's last stage to its end. Raises ``RunError`` if it failed too often."""
    stage, retries = session.stage, session.spec.retries
    session.slim(stage.number - 1)
    begin, renew, faults = time.monotonic(), False, list[str]()
    attempt, checkpoint = first_attempt(session)
    while attempt.number <= retries:
        if checkpoint is None:
            atomic.clear(stage.path, keep=("config.json",))
            for incident in attempt.incidents:
                attempt.note("incident", message=incident.message)
        session.observer.stage_began(stage, session.allowance)
        try:
            trainee = session.trainee_before(stage.number, renew)
            if checkpoint is not None:
                with as_trainee_failed(f"load of {checkpoint / 'trainee'}"):
                    trainee.load(checkpoint / "trainee")
            attempt.run_to_end()
        except SURVIVED as error:
            renew = isinstance(error, WorkerLost | TraineeFailed)
            attempt, checkpoint = next_attempt(attempt, error), None
            faults.append(attempt.incidents[-1].message)
        else:
            finish(attempt, time.monotonic() - begin)
            return
    raise RunError(
        f"stage {stage.number} failed {1 + retries} times ({'; '.join(faults)}). The earlier stages are kept: "
        f"lower the learning rate or change the config in a new run, or remove the cause and "
        f"`envtuning resume {session.log.path}`"
    )


def first_attempt(session: Session) -> tuple[Attempt, Path | None]:
    """The attempt that a killed process left unfinished, with its last checkpoint; or else a new one on the chosen config."""
    stage, log = session.stage, session.log
    checkpoint = inside.latest(log.files, stage.path)
    if checkpoint is None:
        return Attempt(session=session, config=stage.chosen.config), None
    attempt = Attempt.restored(session, checkpoint)
    atomic.write_lines(stage.path / "metrics.jsonl", attempt.lines)  # as it was then
    return attempt, checkpoint


def next_attempt(failed: Attempt, error: Exception) -> Attempt:
    """Record the incident and prepare the next attempt. Raises ``RunError`` if there is no other config to try."""
    if isinstance(error, WorkerLost | TraineeFailed):  # the config is not at fault: repeat the attempt
        kind: IncidentKind = "worker_lost" if isinstance(error, WorkerLost) else "trainee_failed"
        failed.record(kind, f"{error}; the stage starts again from its checkpoint")
        return failed.again(failed.config, charged=False)
    done = failed.session.log.state.done
    good = done[-1].config if done else None
    if isinstance(error, InfeasibleConfig):
        failed.record("generation_failed", f"{error}; the last good config is used again")
        if good is None or good == failed.config:
            number = failed.session.stage.number
            raise RunError(f"stage {number}'s config cannot be drawn: {error}") from error
    else:
        failed.record("diverged", f"{error}; the last good checkpoint and config go on")
    return failed.again(failed.config if good is None else good, charged=True)


def finish(attempt: Attempt, seconds: float) -> None:
    """Write the stage's report and result, with the trainee as it is now."""
    session, stage = attempt.session, attempt.session.stage
    inside.remove(inside.folders(stage.path))
    result = StageResult(
        reason=attempt.reason,
        spent=dict(attempt.spent),
        trained=dict(attempt.trained),
        validated=dict(attempt.validated),
        validations=len(attempt.validations),
        attempts=attempt.number + 1,
        seconds=round(seconds, 3),
        metrics=rates(attempt.episodes),
    )
    save = partial(save_checkpoint, attempt.trainee.save)
    try:
        session.log.finished(save, attempt.episodes, build_report(attempt), result, attempt.config)
    except TraineeFailed as error:
        raise RunError(f"stage {stage.number} is trained, but {error}; fix this and resume") from error
    session.observer.stage_ended(session.stage)
