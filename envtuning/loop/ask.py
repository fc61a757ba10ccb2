"""Between two stages: the engineer reads the report, the guard checks its answer, and the log records the result."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

import engineers
from engineers.guard import Guard
from engineers.knobs import dump, find_knobs, with_values
from engineers.model.ledger import CAPS, Ledger, Taken, with_caps_left
from engineers.model.transcript import Exchange
from engineers.plain.random_search import RandomEngineer
from engineers.redaction import redact
from engineers.report import StageReport
from engineers.roles import find_slices, shares_of, slices_in
from envtuning import atomic
from envtuning.answers import answer
from envtuning.errors import RunError
from envtuning.runs.log import RunLog
from envtuning.runs.plan import Plan
from envtuning.runs.state import Choice, Stage
from envtuning.seeds import derive
from envtuning.trainees.base import Trainee

REDRAWS = 100
TRACEBACK = "engineer_failed.txt"  # beside the stage's proposal: the traceback of a third party's engineer
LoadTrainee = Callable[[], Trainee]


def ask(log: RunLog, trainee: LoadTrainee) -> Choice:
    """Ask the engineer about the last stage's report, and record the next stage's config.

    ``trainee`` loads the trainee as it was after that stage. Only engineers on the trainee's own model need it.
    """
    stage = log.state.stages[-1]
    log.chose(ask_engineer(log, trainee))
    recorded_before(stage).unlink(missing_ok=True)
    return log.state.stages[-1].chosen


def ask_engineer(log: RunLog, trainee: LoadTrainee) -> Choice:
    """Ask the engineer and check its config; keep the current config if it fails or is refused."""
    stage, spec = log.state.stages[-1], log.plan.spec
    report, name = stage.report, spec.engineer.name
    assert report is not None, "a stage that is done has a report"

    # An engineer on the live model bounds its own time, because a thread that keeps generating would disturb training.
    inline = log.plan.asks_the_trainee
    answered = answer(
        make_engineer(log, trainee if inline else None),
        report,
        stage.config,
        name=name,
        editable=spec.editable,
        guard=log.plan.guard,
        timeout=None if inline else spec.engineer.timeout,
    )
    incidents = [] if answered.incident is None else [answered.incident]
    if answered.error is not None:
        trace = redact("".join(traceback.format_exception(answered.error)))
        atomic.write_text(stage.path / TRACEBACK, trace)
        incidents = [one.model_copy(update={"message": f"{one.message} ({TRACEBACK} says where)"}) for one in incidents]
    return Choice(
        config=with_kept_slices(log.plan, stage, answered.config),
        engineer=(answered.proposal.engineer if answered.proposal else "") or name,  # a replay has the recorded one's
        proposal=answered.proposal,
        incidents=incidents,
    )


def with_kept_slices(plan: Plan, last: Stage, config: BaseModel) -> BaseModel:
    """The engineer's config. Where only the last stage is validated, it has shares of the target's slices raised to about ``suites.training_per_slice`` questions in the next stage, or nobody could see these slices.

    Shares that the engineer may not change stay.
    """
    expected = expected_questions(plan, last) if plan.spec.suites.last_alone else 0.0
    if not expected:
        return config
    slices = [piece for piece in find_slices(find_knobs(config, plan.spec.editable)) if piece.share is not None]
    part = min(plan.spec.suites.training_per_slice / expected, 1 / (2 * max(len(slices), 1)))
    whole = slices_in(config)
    now, weights = shares_of(dump(config), whole), sum(float(piece.share.value or 0) for piece in whole if piece.share)
    aims = plan.world.slices(plan.target)
    low = [piece.share for piece in slices if piece.share and piece.name in aims and now[piece.name] < part]
    raised = part * weights / (1 - part * len(low))
    least = {knob.path: round(raised, 6) if "number" in knob.types else math.ceil(raised) for knob in low}
    return with_values(config, {knob.path: knob.fit(least[knob.path], exact=least[knob.path]) for knob in low})


def expected_questions(plan: Plan, last: Stage) -> float:
    """How many questions the next stage has, if it has as many for its budget as the last; 0 if that had none."""
    if last.report is None or last.done is None:
        return 0.0
    asked, trained = sum(row.asked for row in last.report.training_results), last.done.trained.get(plan.unit, 0)
    return plan.spec.stage(last.number + 1).budget * asked / trained if trained else 0.0


def make_engineer(log: RunLog, trainee: LoadTrainee | None = None) -> engineers.Engineer:
    """The run's engineer, seeded for the last stage. Questions of this stage that have a recorded reply are not asked again."""
    stage, spec = log.state.stages[-1], log.plan.spec
    options: dict[str, Any] = {
        "seed": derive(spec.seed, "engineer", stage.number),
        **spec.engineer.options,
        "transcript": stage.transcript_file,
        "ledger": ledger_of(stage).path,
        "desk": log.path / "desk",
    }
    replies = recorded_replies(stage)
    if any(options.get(cap) is not None for cap in CAPS):
        options = with_caps_left(options, spent_before(log))
    engineer = log.plan.make_engineer(trainee, **options)
    engineer.recall(replies)
    return engineer


def spent_before(log: RunLog) -> Taken:
    """The cost of all questions of this run so far, in all processes, including those about the last stage: caps hold for the run."""
    return sum((ledger_of(stage).total() for stage in log.state.done), Taken())


def ledger_of(stage: Stage) -> Ledger:
    """The ledger in which questions about a stage's report are written before they are asked."""
    return Ledger(stage.path / "asked.jsonl")


def recorded_before(stage: Stage) -> Path:
    """The file that keeps the exchanges of an interrupted question while it is asked again."""
    return stage.path / "asked_before.jsonl"


def recorded_replies(stage: Stage) -> list[dict[str, Any]]:
    """Replies from before the process died. The transcript starts anew."""
    kept = stage.files.lines(recorded_before(stage), Exchange, whole=False) + stage.transcript()
    if kept:
        atomic.write_lines(recorded_before(stage), kept)
    stage.transcript_file.unlink(missing_ok=True)  # also if its only line was cut off
    return [line for line in kept if line.get("reply") is not None]


def redraw(plan: Plan, config: BaseModel) -> BaseModel:
    """The config with random editable knobs from the run's seed: the first draw that the world can use."""
    spec, refusals = plan.spec, list[str]()
    for draw in range(REDRAWS):
        space = spec.engineer.options.get("space")
        engineer = RandomEngineer(seed=derive(spec.seed, "first config", draw), space=space)
        blank = StageReport(stage=0, config=dump(config))
        drawn = engineer.propose(blank, current=config, editable=spec.editable).config
        refusals = Guard(plan.world.check).check(drawn, config, editable=spec.editable)
        if not refusals:
            return drawn
    raise RunError(f"none of {REDRAWS} random configs can be drawn ({refusals[-1]}): narrow the first stage's config")
