"""Between two stages: the report goes to the engineer, its answer through the guard, and what comes of it is recorded."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import ValidationError

import engineers
from engineers.guard import Guard
from engineers.knobs import KnobError, dump, find_knobs, get_or_none, validated
from engineers.model.ledger import Ledger, LedgerDamaged, Taken
from engineers.model.transcript import Exchange
from engineers.proposal import Proposal
from engineers.redaction import redact
from engineers.registry import needs_trainee, raise_unless_from_file
from engineers.report import Incident, StageReport
from engineers.roles import split_by_role
from engineers.sentences import in_sentences
from envtuning.runs import atomic
from envtuning.runs.checked import RunError
from envtuning.runs.log import RunLog
from envtuning.runs.plan import Plan
from envtuning.runs.seeds import derive
from envtuning.runs.spec import RunSpec
from envtuning.runs.state import Answer, StageState
from envtuning.trainees import LIVE, factory_of
from envtuning.trainees.base import as_kind

REDRAWS = 100
CAPS = ("max_cost", "max_total_tokens")  # options that bound what all questions of a run take
TRACEBACK = "engineer_failed.txt"  # beside the stage's proposal: where a third party's engineer stumbled
LoadTrainee = Callable[[], Any]


class NoAnswer(RuntimeError):
    """The engineer did not answer in time."""


class EngineerUnavailable(RuntimeError):
    """The engineer cannot be asked at all: an unknown name or option, a missing extra or key, a config without a knob for it."""


def raise_unless_askable(spec: RunSpec) -> None:
    """Find out before the first stage is trained, not after it. Asks nothing."""
    if not spec.asks_an_engineer:
        return
    try:
        if needs_trainee(place_of(spec)):
            as_kind(factory_of(spec.trainee.kind)).check_asked_by(spec.engineer.name)
        engineer = new_engineer(spec, {})
        engineer.check_askable()
    except (engineers.ChatError, ValueError, ImportError) as error:
        raise EngineerUnavailable(str(error)) from error
    raise_unless_able(spec, engineer)


def place_of(spec: RunSpec) -> str:
    """What ``engineers.make`` knows the engineer by."""
    return LIVE.get(spec.engineer.name, spec.engineer.name)


def raise_unless_able(spec: RunSpec, engineer: engineers.Engineer) -> None:
    """Raise ``EngineerUnavailable`` where a written config that the engineer will be shown has nothing for it to turn."""
    for stage, following in pairwise(spec.stages):
        if following.asks and not stage.asks:
            shown: Any = stage.config
            try:
                engineer.check_able(shown, spec.editable)
            except KnobError as error:
                raise EngineerUnavailable(str(error)) from error


def out_of_reach(spec: RunSpec) -> str | None:
    """What no stage will have as the target has it, because this run's engineer cannot turn it: a sentence, or None where there is nothing.

    A model or a human can turn all that is editable. A slice that only the first stage or only the target has does not count.
    """
    written = [dump(config) for config in spec.written_configs[1:]]
    if not spec.asks_an_engineer:
        return None
    engineer = new_engineer(spec, {})
    first: Any = spec.stages[0].config
    target = dump(spec.target)
    try:
        shares, others = split_by_role(find_knobs(first, spec.editable))
    except KnobError:
        return None  # the run itself is refused for it
    turned = {knob.path for knob in (*shares, *(knob for knob in others if engineer.can_turn([knob])))}
    stuck: dict[str, str] = {}
    for knob in find_knobs(first, ("*",)):
        goal = get_or_none(target, knob.path)
        if goal is not None and knob.path not in turned and all(get_or_none(one, knob.path) != goal for one in written):
            stuck.setdefault(
                knob.pattern, f"{knob.name} is {knob.value!r:.60} in the first stage and {goal!r:.60} in the target"
            )
    if not stuck:
        return None
    one, *more = stuck.values()
    also = f" (nor {', '.join([*stuck][1:]):.200})" if more else ""
    return (
        f"{one}, and engineer {spec.engineer.name!r} cannot turn it{also}, so no stage trains on the target's value; "
        "write that into the first stage, or let an engineer turn it (`editable`, `--engineer`)"
    )


def ask(log: RunLog, trainee: LoadTrainee) -> Answer[Any]:
    """The engineer's answer to the last stage's report, asked once and then read from the log.

    ``trainee`` loads the trainee as that stage left it; only engineers on the trainee's own model need it.
    """
    stage = log.state.stages[-1]
    if stage.answer is None:
        log.answered(ask_engineer(log, trainee))
        recorded_before(stage).unlink(missing_ok=True)
    return log.state.answers[-1]


def ask_engineer(log: RunLog, trainee: LoadTrainee) -> Answer[Any]:
    """Ask, check, and fall back to the current config where the engineer fails or is refused."""
    stage, spec, config_type = log.state.stages[-1], log.plan.spec, log.plan.world.config_type
    report, answer = stage.report, Answer[config_type]  # type: ignore[valid-type]
    assert report is not None, "a stage that is done has a report"
    current = validated(config_type, report.config)

    def kept(kind: Any, message: str, proposal: Any = None) -> Answer[Any]:
        """The current config goes on, and why."""
        incident = Incident(kind=kind, message=redact(message), stage=stage.number)
        return answer(proposal=proposal, config=current, incidents=[incident])

    name = spec.engineer.name
    inline = needs_trainee(
        place_of(spec)
    )  # bounds its own time: a thread that keeps generating would disturb the training
    engineer = make_engineer(log, trainee if inline else None)
    try:
        proposal = within(
            None if inline else spec.engineer.timeout,
            lambda: engineer.propose(report, current=current, editable=spec.editable),
        )
    except Exception as error:  # a third party's engineer may fail in any way; the run continues with what works
        atomic.write_text(stage.path / TRACEBACK, redact("".join(traceback.format_exception(error))))
        said = f"{name} failed ({type(error).__name__}: {error}); the current config is kept ({TRACEBACK} says where)"
        return kept("engineer_failed", said)
    if proposal.fallback:
        why = "; ".join(proposal.refusals) or "it gave no config"
        return kept("engineer_failed", f"{name} gave no usable config ({why}); the current config is kept", proposal)
    guard, refusals = log.plan.guard, []
    if engineer.guard != guard:  # who was given the guard has asked it
        refusals = guard.check(proposal, current, report.records(), editable=spec.editable, objective=report.objective)
    if refusals:
        said = f"{name}'s config was refused ({'; '.join(refusals)}); the current config is kept"
        return kept("refused_proposal", said, proposal)
    return answer(proposal=proposal, config=proposal.config)


def make_engineer(log: RunLog, trainee: LoadTrainee | None = None) -> engineers.Engineer:
    """The run's engineer, seeded for the last stage; what it was already told for this stage is not asked again."""
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
    engineer = new_engineer(spec, options, trainee)
    engineer.recall(replies)
    return engineer


def new_engineer(spec: RunSpec, options: dict[str, Any], trainee: LoadTrainee | None = None) -> engineers.Engineer:
    """The spec's engineer, with the guard that the run has. Raises ``EngineerUnavailable``."""
    given = spec.engineer.options | options | {"guard": Plan(spec).guard}
    place = place_of(spec)
    try:
        raise_unless_from_file(place, spec.engineer.options)
        if isinstance(given.get("context"), dict):  # a context of one's own, written out in the run's file
            given["context"] = engineers.Context(**given["context"])
        if needs_trainee(place):
            given |= {"trainee": trainee and trainee(), "timeout": spec.engineer.timeout}
        return engineers.make(place, **given)
    except ValidationError as error:
        raise EngineerUnavailable(in_sentences(error)) from error
    except (engineers.UnknownEngineer, ImportError, TypeError, ValueError) as error:
        raise EngineerUnavailable(str(error)) from error


def spent_before(log: RunLog) -> dict[str, float]:
    """What questions of this run took, those about the last stage included, asked by whichever process: a cap holds for the run."""
    total = Taken()
    for stage in log.state.done:
        ledger = ledger_of(stage)
        try:
            total += ledger.total() if ledger.path.exists() else _by_transcript(stage)
        except LedgerDamaged as error:
            raise RunError(str(error)) from error
    return dict(zip(CAPS, (total.cost or 0.0, total.tokens)))


def ledger_of(stage: StageState) -> Ledger:
    """Where the questions about a stage's report are noted before they are asked."""
    return Ledger(stage.path / "asked.jsonl")


def _by_transcript(stage: StageState) -> Taken:
    """The same of a run that kept no ledger yet."""
    lines = stage.transcript()
    return Taken(
        sum(line["prompt_tokens"] + line["completion_tokens"] for line in lines),
        sum(line.get("cost") or 0.0 for line in lines),
    )


def recorded_before(stage: StageState) -> Path:
    """Where an interrupted question's exchanges are kept while it is asked again."""
    return stage.path / "asked_before.jsonl"


def recorded_replies(stage: StageState) -> list[dict[str, Any]]:
    """Replies that came before the process died; the transcript itself starts afresh."""
    kept = stage.files.lines(recorded_before(stage), Exchange, whole=False) + stage.transcript()
    if kept:
        atomic.write_lines(recorded_before(stage), kept)
    stage.transcript_file.unlink(missing_ok=True)  # also where its only line was cut off
    return [line for line in kept if line.get("reply") is not None]


def within(seconds: float | None, question: Callable[[], Proposal[Any]]) -> Proposal[Any]:
    """The question's answer, or ``NoAnswer`` after so many seconds; a thread that never ends dies with the process."""
    if seconds is None:
        return question()
    answers: list[Proposal[Any]] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(question())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="engineer", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise NoAnswer(f"no answer within {seconds:g} s")
    if errors:
        raise errors[0]
    return answers[0]


def redraw(spec: RunSpec, config: Any) -> Any:
    """The config with its editable knobs drawn from the run's seed, the first draw that the generator can meet."""
    refusals: list[str] = []
    for draw in range(REDRAWS):
        engineer = engineers.make(
            "random", seed=derive(spec.seed, "first config", draw), space=spec.engineer.options.get("space")
        )
        blank = StageReport(stage=0, config=dump(config))
        drawn = engineer.propose(blank, current=config, editable=spec.editable).config
        refusals = Guard(spec.world.made.check).check(drawn, config, editable=spec.editable)
        if not refusals:
            return drawn
    raise RunError(f"none of {REDRAWS} random configs can be drawn ({refusals[-1]}): narrow the first stage's config")
