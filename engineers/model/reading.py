"""Makes a config from a reply's text: finds, parses and guards it. The same for models and people."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel

from engineers.guard import NO_GUARD, Guard
from engineers.model.answer_format import AnswerFormat
from engineers.model.replies import ReplyError, parse_reply
from engineers.proposal import Change
from engineers.report import StageReport

ConfigT = TypeVar("ConfigT", bound=BaseModel)


def read_config(
    text: str,
    answer_format: AnswerFormat[ConfigT],
    report: StageReport,
    *,
    guard: Guard = NO_GUARD,
) -> tuple[ConfigT, list[Change]]:
    """The config in a reply, and the reasons given for its changes. Raises ``ReplyError`` for everything else."""
    answer = parse_reply(text)
    config = answer_format.merge(answer)
    refusals = guard.check(
        config, answer_format.current, report.records(), editable=answer_format.editable, objective=report.objective
    )
    if refusals:
        raise ReplyError("config", "; ".join(refusals))
    return config, answer_format.reasons(answer, config)
