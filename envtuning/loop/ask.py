"""Between two stages: the engineer reads the report, the guard checks its answer, and the log records the result."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import engineers
from engineers.guard import Guard
from engineers.knobs import dump, validated
from engineers.model.ledger import Ledger, Taken
from engineers.model.transcript import Exchange
from engineers.patience import within
from engineers.redaction import redact
from engineers.report import Incident, StageReport
from envtuning import atomic
from envtuning.errors import RunError
from envtuning.runs.log import RunLog
from envtuning.runs.plan import Plan
from envtuning.runs.state import Answer, StageState
from envtuning.seeds import derive

REDRAWS = 100
CAPS = ("max_cost", "max_total_tokens")  # options that bound the cost of all questions of a run
TRACEBACK = "engineer_failed.txt"  # beside the stage's proposal: the traceback of a third party's engineer
LoadTrainee = Callable[[], Any]


def ask(log: RunLog, trainee: LoadTrainee) -> Answer[Any]:
    """The engineer's answer to the last stage's report. It is asked once; later calls read the answer from the log.

    ``trainee`` loads the trainee as it was after that stage. Only engineers on the trainee's own model need it.
    """
    stage = log.state.stages[-1]
    if stage.answer is None:
        log.answered(ask_engineer(log, trainee))
        recorded_before(stage).unlink(missing_ok=True)
    return log.state.answers[-1]


def ask_engineer(log: RunLog, trainee: LoadTrainee) -> Answer[Any]:
    """Ask the engineer and check its config; keep the current config if it fails or is refused."""
    stage, spec, config_type = log.state.stages[-1], log.plan.spec, log.plan.world.config_type
    report, answer = stage.report, Answer[config_type]  # type: ignore[valid-type]
    assert report is not None, "a stage that is done has a report"
    current = validated(config_type, report.config)

    def kept(kind: Any, message: str, proposal: Any = None) -> Answer[Any]:
        """An answer that keeps the current config, with the reason."""
        incident = Incident(kind=kind, message=redact(message), stage=stage.number)
        return answer(proposal=proposal, config=current, incidents=[incident])

    name = spec.engineer.name
    # An engineer on the live model bounds its own time, because a thread that keeps generating would disturb training.
    inline = log.plan.asks_the_trainee
    engineer = make_engineer(log, trainee if inline else None)
    try:
        question = partial(engineer.propose, report, current=current, editable=spec.editable)
        timeout = None if inline else spec.engineer.timeout
        proposal = question() if timeout is None else within(timeout, "engineer", question)
    except Exception as error:  # a third party's engineer may fail in any way; the run continues
        atomic.write_text(stage.path / TRACEBACK, redact("".join(traceback.format_exception(error))))
        said = f"{name} failed ({type(error).__name__}: {error}); the current config is kept ({TRACEBACK} says where)"
        return kept("engineer_failed", said)
    if proposal.fallback:
        why = "; ".join(proposal.refusals) or "it gave no config"
        return kept("engineer_failed", f"{name} gave no usable config ({why}); the current config is kept", proposal)
    guard, refusals = log.plan.guard, []
    if engineer.guard != guard:  # an engineer with the run's guard has already asked it
        refusals = guard.check(proposal, current, report.records(), editable=spec.editable, objective=report.objective)
    if refusals:
        said = f"{name}'s config was refused ({'; '.join(refusals)}); the current config is kept"
        return kept("refused_proposal", said, proposal)
    return answer(proposal=proposal.with_changes(current), config=proposal.config)


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
    for cap in [cap for cap in CAPS if options.get(cap) is not None]:
        options[cap] = max(type(options[cap])(0), options[cap] - spent_before(log)[cap])
    engineer = log.plan.make_engineer(trainee, **options)
    engineer.recall(replies)
    return engineer


def spent_before(log: RunLog) -> dict[str, float]:
    """The cost of all questions of this run so far, in all processes, including those about the last stage: caps hold for the run."""
    total = sum((ledger_of(stage).total() for stage in log.state.done), Taken())
    return dict(zip(CAPS, (total.cost or 0.0, total.tokens)))


def ledger_of(stage: StageState) -> Ledger:
    """The ledger in which questions about a stage's report are written before they are asked."""
    return Ledger(stage.path / "asked.jsonl")


def recorded_before(stage: StageState) -> Path:
    """The file that keeps the exchanges of an interrupted question while it is asked again."""
    return stage.path / "asked_before.jsonl"


def recorded_replies(stage: StageState) -> list[dict[str, Any]]:
    """Replies from before the process died. The transcript starts anew."""
    kept = stage.files.lines(recorded_before(stage), Exchange, whole=False) + stage.transcript()
    if kept:
        atomic.write_lines(recorded_before(stage), kept)
    stage.transcript_file.unlink(missing_ok=True)  # also if its only line was cut off
    return [line for line in kept if line.get("reply") is not None]


def redraw(plan: Plan, config: Any) -> Any:
    """The config with random editable knobs from the run's seed: the first draw that the world can use."""
    spec, refusals = plan.spec, list[str]()
    for draw in range(REDRAWS):
        engineer = engineers.make(
            "random", seed=derive(spec.seed, "first config", draw), space=spec.engineer.options.get("space")
        )
        blank = StageReport(stage=0, config=dump(config))
        drawn = engineer.propose(blank, current=config, editable=spec.editable).config
        refusals = Guard(plan.world.check).check(drawn, config, editable=spec.editable)
        if not refusals:
            return drawn
    raise RunError(f"none of {REDRAWS} random configs can be drawn ({refusals[-1]}): narrow the first stage's config")
