"""``ModelEngineer``: any language model as an engineer. Prompt, ask, parse, guard; re-ask with the error; else fall back."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from engineers.common_options import require_common
from engineers.engineer import Engineer
from engineers.from_file import PLAIN, Allowed
from engineers.guard import NO_GUARD, Guard
from engineers.model.answer_format import AnswerFormat, answer_format_of
from engineers.model.chat import Chat, ChatError, Message
from engineers.model.context import Context, context_named
from engineers.model.ledger import Ledger, Taken
from engineers.model.meter import Meter
from engineers.model.prompt import (
    PROMPT_VERSION,
    QUOTED,
    build_prompt,
    build_reask,
    build_summary_prompt,
    quoted,
    require_templates,
)
from engineers.model.reading import read_config
from engineers.model.replies import ReplyError, encodable, without_thoughts
from engineers.model.transcript import Exchange, Transcript, now
from engineers.proposal import Change, Proposal, Usage
from engineers.redaction import redact
from engineers.report import StageReport
from engineers.report_check import raise_unless_about
from engineers.space import Space, checked_space

ConfigT = TypeVar("ConfigT", bound=BaseModel)

logger = logging.getLogger("engineers")

USED = ("prompt_tokens", "completion_tokens", "cost")  # fields of an exchange and of a usage

# In addition to the options of every engineer:
FROM_FILE: Allowed = {"max_tokens": PLAIN, "name": PLAIN}


class ModelEngineer(Engineer):
    """An engineer that asks a ``Chat``.

    ``propose`` raises no error of a model or a network. After ``max_attempts`` bad replies, a failure of the backend, or
    before a budget is overspent, it keeps the current config with ``fallback=True`` and the reasons in ``refusals``.
    """

    guard: Guard
    recorded: Sequence[Mapping[str, Any]] = ()  # paid exchanges of a process that was killed later

    def __init__(
        self,
        chat: Chat,
        *,
        context: str | Context = "informed",
        max_attempts: int = 3,
        max_tokens: int = 4_096,  # of one answer, thoughts included
        max_total_tokens: int | None = None,  # of all questions and answers of this engineer's life
        max_cost: float | None = None,  # US dollars, of all questions and answers, too
        ledger: str | Path | None = None,  # JSONL file in which every question is noted before it is asked
        meter: Meter | None = None,  # instead of the two caps: shared with other engineers
        transcript: str | Path | None = None,  # JSONL file that every exchange is added to
        guard: Guard = NO_GUARD,
        space: Space | None = None,  # ranges that the prompt calls sensible; a model may leave them, but not bounds
        name: str | None = None,
        **unused: Any,  # options of engineers.make that only engineers without a model need
    ) -> None:
        require_common(type(self).__name__, unused)
        require_templates()
        if max_attempts < 1 or max_tokens < 1:
            raise ValueError(f"max_attempts={max_attempts}, max_tokens={max_tokens}: both must be at least 1")
        if meter is not None and (max_total_tokens, max_cost) != (None, None):
            raise ValueError("meter has caps of its own: give either a meter or max_total_tokens and max_cost")
        self.chat = chat
        self.name = redact(name or chat.model)  # a server's address may hold a password
        self.context = context_named(context)
        self.tier = self.context.tier
        self.max_attempts = max_attempts
        self.max_tokens = max_tokens
        self.meter = meter or Meter(max_total_tokens=max_total_tokens, max_cost=max_cost)
        self.transcript = Transcript(Path(transcript)) if transcript is not None else None
        self.ledger = Ledger(Path(ledger)) if ledger is not None else None
        self.guard, self.space = guard, checked_space(space)

    def recall(self, exchanges: Sequence[Mapping[str, Any]]) -> None:
        self.recorded = exchanges

    def check_askable(self) -> None:
        getattr(self.chat, "raise_unless_askable", lambda: None)()
        self.meter.raise_unless_priced(self.chat.model)

    def check_able(self, current: BaseModel, editable: Sequence[str] | None = None) -> None:
        """Raise ``KnobError`` if no answer could change or keep the config's knobs, or if ``space`` names other knobs."""
        answer_format_of(current, editable, self.space)

    def propose(
        self, report: StageReport, current: ConfigT, editable: Sequence[str] | None = None
    ) -> Proposal[ConfigT]:
        """The model's next config, guarded; or the current one with ``fallback=True``.

        Raises ``KnobError`` for a ``space`` or an ``editable`` path that the config does not have, and ``ReportUnclear``.
        """
        raise_unless_about(report, current)
        answer_format = answer_format_of(current, editable, self.space)
        dialogue = _Dialogue(self, report.stage)
        try:
            messages = self._opening(dialogue, report, answer_format)
            while dialogue.may_ask("proposal"):
                text = ""
                try:
                    text = dialogue.ask("proposal", messages, answer_format.schema)
                    config, reasons = read_config(text, answer_format, report, guard=self.guard)
                    return self._proposal(dialogue, config, reasons)
                except ReplyError as error:
                    dialogue.refuse(error)
                except ChatError as error:
                    if not error.ask_again:
                        raise
                    dialogue.refuse(error)
                messages = [*messages, quoted(text), build_reask(dialogue.refusals[-1])]
        except ChatError as error:
            dialogue.refuse(error)
        return self._proposal(dialogue, current, [], fallback=True)

    def exchange(
        self, stage: int, number: int, kind: str, messages: list[Message], schema: dict[str, Any] | None
    ) -> Exchange:
        """Ask once, within the budget; returns the exchange, which has an ``error`` after a failure."""
        asked = Exchange(
            when=now(),
            prompt_version=PROMPT_VERSION,
            engineer=self.name,
            model=self.chat.model,
            context=self.context,
            max_attempts=self.max_attempts,
            stage=stage,
            number=number,
            kind=kind,
            messages=[dict(message) for message in messages],
            json_schema=schema,
            max_tokens=self.max_tokens,
        )
        begin = time.monotonic()
        recorded = next((one for one in self.recorded if one["messages"] == messages), None)
        told = {name: recorded[name] for name in ("reply", *USED)} if recorded else self._asked(messages, schema)
        return asked.model_copy(update={**told, "seconds": round(time.monotonic() - begin, 3)})

    def _asked(self, messages: list[Message], schema: dict[str, Any] | None) -> dict[str, Any]:
        """Ask for real; returns the exchange's reply or error, with ``USED``. The ledger has the worst case before, the real cost afterwards."""
        model, noted = self.chat.model, False
        try:
            self.meter.reserve(model, messages, schema, self.max_tokens)
            if self.ledger is not None:
                self.ledger.asks(self.meter.worst_case(model))
                noted = True
            completion = self.chat.complete(messages, schema, max_tokens=self.max_tokens)
            told = {"reply": redact(encodable(completion.text))}
            used = charged = self.meter.record(model, messages, completion)
        except ChatError as error:
            told = {"error": str(error), "error_kind": type(error).__name__}
            charged = self.meter.record_failure(model, error, messages)
            used = charged if error.spent is not None else (0, 0, 0.0)  # charged to the caps, but not known to be used
        if self.ledger is not None and noted:
            self.ledger.took(Taken(charged[0] + charged[1], charged[2]))
        return told | dict(zip(USED, used, strict=True))

    def _opening(self, dialogue: _Dialogue, report: StageReport, answer_format: AnswerFormat[Any]) -> list[Message]:
        """The question, preceded by the model's own summary where the context asks for one."""
        summary = ""
        if self.context.summary:
            question = build_summary_prompt(report, answer_format, self.context)
            summary = without_thoughts(dialogue.ask("summary", question.messages, None)).strip()[:QUOTED]
        return build_prompt(report, answer_format, self.context, summary, space=self.space).messages

    def _proposal(
        self, dialogue: _Dialogue, config: ConfigT, reasons: list[Change], *, fallback: bool = False
    ) -> Proposal[ConfigT]:
        return Proposal(
            config=config,
            reasons=reasons,
            usage=dialogue.usage,
            engineer=self.name,
            fallback=fallback,
            refusals=dialogue.refusals,
        )


class _Dialogue:
    """The exchanges of one proposal: counted, recorded, added up."""

    def __init__(self, engineer: ModelEngineer, stage: int) -> None:
        self.engineer, self.stage = engineer, stage
        self.usage = Usage()
        self.refusals: list[str] = []
        self.asked: Counter[str] = Counter()

    def may_ask(self, kind: str) -> bool:
        return self.asked[kind] < self.engineer.max_attempts

    def refuse(self, why: Exception) -> None:
        self.refusals.append(redact(str(why)))

    def ask(self, kind: str, messages: list[Message], schema: dict[str, Any] | None) -> str:
        """The reply's text. After a broken connection it asks again while attempts are left; else raises ``ChatError``."""
        engineer = self.engineer
        while True:
            attempt = f"{kind}, attempt {self.asked[kind] + 1} of {engineer.max_attempts}"
            logger.info("asking %s (stage %d, %s) …", engineer.name, self.stage, attempt)
            exchange = engineer.exchange(self.stage, self.asked.total(), kind, messages, schema)
            self.asked[kind] += 1
            self._record(exchange)
            told = "an answer" if exchange.reply is not None else exchange.error_kind
            logger.info("%s after %.0f s, %d tokens", told, exchange.seconds, exchange.completion_tokens)
            if exchange.reply is not None:
                return exchange.reply
            failure = exchange.failure()
            assert failure is not None
            if not (failure.transient and failure.may_be_billed and self.may_ask(kind)):
                raise failure
            self.refuse(failure)

    def _record(self, exchange: Exchange) -> None:
        if self.engineer.transcript is not None:
            self.engineer.transcript.append(exchange)
        used = exchange.model_dump(include={*USED, "seconds"})
        self.usage = Usage.total((self.usage, Usage(**used, attempts=1)))
