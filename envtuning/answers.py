"""An engineer's answer to a report, checked: the config to train on next, whatever the engineer does."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from pydantic import BaseModel

from engineers.engineer import Engineer
from engineers.guard import NO_GUARD, Guard, read_back
from engineers.knobs import KnobError
from engineers.proposal import Proposal
from engineers.redaction import redact
from engineers.report import Incident, IncidentKind, StageReport
from engineers.shared.timeouts import run_with_timeout


class Answer(NamedTuple):
    """``config`` is the engineer's, or else the current one, with the incident that says why."""

    config: BaseModel
    proposal: Proposal[Any] | None = None
    incident: Incident | None = None
    error: Exception | None = None  # that the engineer raised


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
    """Ask the engineer, within ``timeout`` seconds, and check its config; keep the current one if it fails or is refused."""

    def kept(
        kind: IncidentKind, why: str, proposal: Proposal[Any] | None = None, error: Exception | None = None
    ) -> Answer:
        message = redact(f"{why}; the current config is kept")
        return Answer(current, proposal, Incident(kind=kind, message=message, stage=report.stage), error)

    try:
        question = partial(engineer.propose, report, current=current, editable=editable)
        proposal = question() if timeout is None else run_with_timeout(timeout, "engineer", question)
        if not isinstance(proposal, Proposal):
            raise TypeError(f"propose returned a {type(proposal).__name__}, not a Proposal")
    except Exception as error:  # a third party's engineer may fail in any way; training continues
        return kept("engineer_failed", f"{name} failed ({type(error).__name__}: {error})", error=error)
    try:
        config = read_back(proposal.config, current)  # here it enters: from now on this object travels
    except KnobError as error:
        return kept("refused_proposal", f"{name}'s config was refused ({error})")
    proposal = proposal.model_copy(update={"config": config})
    if proposal.fallback:
        why = "; ".join(proposal.refusals) or "it gave no config"
        return kept("engineer_failed", f"{name} gave no usable config ({why})", proposal)
    refusals = []
    if engineer.guard != guard:  # an engineer with this guard has already asked it
        refusals = guard.rules(config, current, report.records(), editable=editable, objective=report.objective)
    if refusals:
        return kept("refused_proposal", f"{name}'s config was refused ({'; '.join(refusals)})", proposal)
    return Answer(config, proposal.with_changes(current))
