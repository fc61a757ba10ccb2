"""An engineer's answer to a report, checked: the config to train on next, whatever the engineer does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel

from engineers.engineer import Engineer
from engineers.guard import NO_GUARD, Guard, read_back
from engineers.knobs import KnobError
from engineers.proposal import Proposal
from engineers.redaction import redact
from engineers.report import Incident, IncidentKind, StageReport
from engineers.shared.places import with_place
from engineers.shared.timeouts import run_with_timeout


class _CalledExit(Exception):
    """The engineer's own code called ``exit``: the ``SystemExit`` is the cause."""


class Answer(NamedTuple):
    """``config`` is the engineer's, or else the current one, with the incident that says why. The proposal has the same config.

    The proposal is None if the engineer gave none.
    """

    config: BaseModel
    proposal: Proposal[Any] | None = None
    incident: Incident | None = None
    error: BaseException | None = None  # that the engineer raised


def answer(
    engineer: Engineer,
    report: StageReport,
    current: BaseModel,
    *,
    name: str,
    editable: Sequence[str] | None = None,
    guard: Guard = NO_GUARD,
    timeout: float | None = None,
) -> Answer:
    """Ask the engineer, within ``timeout`` seconds, and check its config; keep the current one if it fails or is refused.

    What the engineer gets are copies, so what it edits in place is in force only as its proposal.
    """

    def kept(
        kind: IncidentKind, why: str, proposal: Proposal[Any] | None = None, refusals: Sequence[str] = ()
    ) -> Answer:
        if proposal is not None:
            proposal = unused(proposal, current, refusals)
        return Answer(current, proposal, incident(kind, why, report.stage))

    def question() -> Proposal[Any]:
        # With a timeout this runs in a thread of its own, so a SystemExit here is the engineer's; one that a handler of SIGTERM raises
        # in the main thread, which waits, ends the process. Without a timeout the two cannot be told apart, and both count as the engineer's.
        try:
            read = StageReport.model_validate(report.model_dump())  # of many stages, three times as fast as a deep copy
            return engineer.propose(read, current=current.model_copy(deep=True), editable=editable)
        except SystemExit as error:
            raise _CalledExit from error

    try:
        proposal = question() if timeout is None else run_with_timeout(timeout, "engineer", question)
        if not isinstance(proposal, Proposal):
            raise TypeError(f"propose returned a {type(proposal).__name__}, not a Proposal")
    except Exception as error:  # a third party's engineer may fail in any way; training continues
        first = error.__cause__ if isinstance(error, _CalledExit) and error.__cause__ is not None else error
        return failed(first, report, current, name=name)
    if proposal.fallback:
        why = "; ".join(proposal.refusals) or "it gave no config"
        return kept("engineer_failed", f"{name} gave no usable config ({why})", proposal)
    refusals = []
    try:
        config = read_back(proposal.config, current)  # here it enters: from now on this object travels
    except KnobError as error:
        refusals = [str(error)]
    if not refusals and engineer.guard != guard:  # an engineer with this guard has already asked it
        refusals = guard.rules(config, current, report.records(), editable=editable, objective=report.objective)
    if refusals:
        return kept("refused_proposal", f"{name}'s config was refused ({'; '.join(refusals)})", proposal, refusals)
    return Answer(config, proposal.model_copy(update={"config": config}).with_changes(current))


def failed(error: BaseException, report: StageReport, current: BaseModel, *, name: str) -> Answer:
    """The answer of an engineer that raised this, or that could not be made."""
    why = f"{name} failed ({with_place(error)})"
    return Answer(current, None, incident("engineer_failed", why, report.stage), error)


def unused(proposal: Proposal[Any], current: BaseModel, refusals: Sequence[str]) -> Proposal[Any]:
    """What it took counts; its reasons are for a config that is not in force."""
    told = [*proposal.refusals, *map(redact, refusals)]
    now = {"config": current, "reasons": [], "kept": {}, "fallback": True, "refusals": told}
    return proposal.model_copy(update=now)


def incident(kind: IncidentKind, why: str, stage: int) -> Incident:
    return Incident(kind=kind, message=redact(f"{why}; the current config is kept"), stage=stage)
