"""Makes a config from a reply's text: finds, parses and guards it. The same for models and people."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel

from engineers.guard import NO_GUARD, Guard
from engineers.model.replies import ReplyError, parse_reply
from engineers.model.wire import WireForm
from engineers.proposal import Change
from engineers.report import StageReport

ConfigT = TypeVar("ConfigT", bound=BaseModel)


def read_config(
    text: str,
    wire_form: WireForm[ConfigT],
    report: StageReport,
    *,
    guard: Guard = NO_GUARD,
) -> tuple[ConfigT, list[Change]]:
    """The config in a reply, and the reasons given for its changes. Raises ``ReplyError`` for everything else."""
    answer = parse_reply(text)
    config = wire_form.merge(answer)
    refusals = guard.check(
        config, wire_form.current, report.records(), editable=wire_form.editable, objective=report.objective
    )
    if refusals:
        raise ReplyError("config", "; ".join(refusals))
    return config, wire_form.reasons(answer, config)
